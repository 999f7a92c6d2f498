package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// margin is by how much `make bench-check` lets a target be missed.
const margin = 1.25

// Some allocations are not the generator's but those of the runtime, in a turn
// of a hundred thousand calls or more. One in each batch of IDs would be 3900
// in a million calls.
const (
	freeAllocs = 100.0 // a million calls
	freeBytes  = 1.0   // a call
)

// target is a line of the table of ratios.
type target struct {
	what, against string
	of, to        string // keys of subjects
	most          float64
	first         float64 // an earlier, weaker target, or 0
}

// line is a target with what was measured.
type line struct {
	what, against     string
	cost, counterpart string
	ratio, cpu        float64 // cpu: the ratio of CPU times, or 0
	most, first       float64
	within            float64 // what the measurement leaves open
	crowded           string  // why a ratio of parallel turns is none, or ""
	allocs, bytes     float64 // more than the counterpart's: a million calls, a call
	allocations       string
	allocated         string
	unit              string // of ratio, "" for a plain ratio
}

func targets() (t []target) {
	for _, n := range several() {
		who := "one goroutine"
		if n > 1 {
			who = fmt.Sprintf("GOMAXPROCS (%d) goroutines", n)
		}
		ids, span := key("NewIDs", "traceflake", n), key("NewSpanID", "traceflake", n)
		t = append(t,
			target{what: "`idgen` NewIDs, " + who, against: "the SDK's default generator", of: ids, to: key("NewIDs", "default", n), most: 1},
			target{what: "`idgen` NewSpanID, " + who, against: "the SDK's default generator", of: span, to: key("NewSpanID", "default", n), most: 1.5, first: 1.8},
			target{what: "`idgen` NewIDs, " + who, against: "X-Ray's generator", of: ids, to: key("NewIDs", "xray", n), most: 0.3},
			target{what: "NewIDs from a leased source, " + who, against: "from the private one", of: key("NewIDs", "leased", n), to: ids, most: 1.05},
			target{what: "NewSpanID from a leased source, " + who, against: "from the private one", of: key("NewSpanID", "leased", n), to: span, most: 1.05},
		)
	}
	for _, s := range []struct{ name, what string }{
		{"RootSpanNever", "Start+End of a root span, never sampled"},
		{"RootSpanAlways", "Start+End of a root span, always sampled"},
		{"ChildSpanNever", "Start+End of a child span, never sampled"},
		{"ChildSpanAlways", "Start+End of a child span, always sampled"},
	} {
		t = append(t, target{what: s.what, against: "with the default generator", of: key(s.name, "traceflake", 1), to: key(s.name, "default", 1), most: 1.03})
	}
	one := key("Draw", "rand", 1)
	return append(t,
		target{what: "`sparx64` EncryptUint64s of 256, per block, " + withoutAVX512(), against: "one draw of math/rand/v2.Uint64", of: key("EncryptUint64s", "sparx64-avx2", 1), to: key("Draw", "rand-avx2", 1), most: 1.3},
		target{what: "the same, portable", against: "one draw", of: key("EncryptUint64s", "sparx64-purego", 1), to: key("Draw", "rand-purego", 1), most: 9},
		target{what: "`randflake` Fill of 256, per ID, " + fastest(), against: "one draw", of: key("Fill", "randflake", 1), to: one, most: 1.5},
		target{what: "`randflake` Next, portable", against: "one draw", of: key("Next", "randflake", 1), to: one, most: 20},
	)
}

// lines holds every target against the samples. A target without its samples
// is an error: it must not pass for one that was met.
func lines(m samples) (out []line, err error) {
	for _, t := range targets() {
		if len(m.of[t.of]) == 0 || len(m.of[t.to]) == 0 {
			return nil, fmt.Errorf("no samples of %s or %s", t.of, t.to)
		}
		l := line{
			what: t.what, against: t.against, most: t.most, first: t.first,
			ratio:       m.ratio(t.of, t.to, sample.wallNs),
			cpu:         m.ratio(t.of, t.to, sample.cpuNs),
			cost:        fmt.Sprintf("%.1f ns", m.median(t.of, sample.wallNs)),
			counterpart: fmt.Sprintf("%.1f ns", m.median(t.to, sample.wallNs)),
		}
		l.crowded = m.crowded(t.of, t.to)
		allocs, others := 1e6*m.median(t.of, sample.allocations), 1e6*m.median(t.to, sample.allocations)
		bytes, theirs := m.median(t.of, sample.allocated), m.median(t.to, sample.allocated)
		l.allocs, l.bytes = allocs-others, bytes-theirs // spans allocate with any generator
		l.allocations = fmt.Sprintf("%.0f, %.0f", allocs, others)
		l.allocated = fmt.Sprintf("%.2f, %.2f", bytes, theirs)
		out = append(out, l)
	}
	return append(out, crowdLines(m)...), nil
}

// crowdLines hold the throughput with more goroutines against the best with
// fewer: it must not fall, not in small steps either. A twentieth is what two
// turns differ by anyway.
func crowdLines(m samples) (out []line) {
	for _, name := range []string{"NewIDs", "NewSpanID"} {
		l := line{what: name + ", time per ID with n goroutines", against: "with the best number below n; the worst n", most: 1.05}
		best := crowd[0]
		for _, n := range crowd[1:] {
			of, to := key("Crowd"+name, "traceflake", n), key("Crowd"+name, "traceflake", best)
			if len(m.of[of]) == 0 {
				return nil // the curve was not asked for
			}
			if l.crowded == "" {
				l.crowded = m.crowded(of, to)
			}
			if r := m.ratio(of, to, sample.wallNs); r > l.ratio {
				l.ratio = r
				l.cpu = m.ratio(of, to, sample.cpuNs)
				l.cost = fmt.Sprintf("%.1f ns, n = %d", m.median(of, sample.wallNs), n)
				l.counterpart = fmt.Sprintf("%.1f ns, %d goroutines", m.median(to, sample.wallNs), best)
			}
			if m.median(of, sample.wallNs) < m.median(to, sample.wallNs) {
				best = n
			}
		}
		out = append(out, l)
	}
	return out
}

// met and failed are verdicts; between them is a target missed within margin.
// A ratio counts as the table shows it, in hundredths.
func (l line) met() bool {
	return l.crowded == "" && !l.allocates() && math.Round(l.ratio*100) <= math.Round((l.most+l.within)*100)
}

func (l line) allocates() bool { return l.allocs > freeAllocs || l.bytes > freeBytes }

func (l line) failed() bool {
	return l.crowded != "" || l.allocates() || l.ratio > l.most*margin+l.within
}

func (l line) verdict() string {
	switch {
	case l.crowded != "":
		return l.crowded
	case l.allocates():
		return fmt.Sprintf("missed: %.0f allocations more in a million calls, %.2f bytes a call", l.allocs, l.bytes)
	case l.met():
		return "met"
	case l.first > 0 && l.ratio <= l.first:
		return fmt.Sprintf("missed, first target of %g met", l.first)
	case l.most == 0:
		return "missed"
	default:
		return fmt.Sprintf("missed by %.0f %%", (l.ratio/l.most-1)*100)
	}
}

func (l line) target() string {
	if l.first > 0 {
		return fmt.Sprintf("%g, then %g%s", l.first, l.most, l.unit)
	}
	if l.within > 0 {
		return fmt.Sprintf("%g%s, to within %g", l.most, l.unit, l.within)
	}
	return fmt.Sprintf("%g%s", l.most, l.unit)
}

func (l line) cpuText() string {
	if l.cpu == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", l.cpu)
}

// table is the table of ratios for RESULTS.md.
func table(ls []line) string {
	rows := [][]string{{"what", "cost", "against", "cost", "ratio", "of CPU time", "allocations a million calls", "bytes a call", "at most", ""}}
	for _, l := range ls {
		rows = append(rows, []string{l.what, l.cost, l.against, l.counterpart,
			fmt.Sprintf("%.2f%s", l.ratio, l.unit), l.cpuText(), l.allocations, l.allocated, l.target(), l.verdict()})
	}
	return markdown(rows)
}

// check prints ratio, target and verdict, and fails when a target is missed
// by more than the margin.
func check(ls []line) error {
	for _, l := range ls {
		verdict := l.verdict()
		if l.failed() {
			verdict = "FAILED: " + verdict
		}
		fmt.Printf("%8.2f%-4s  at most %-18s %-40s %s, against %s\n", l.ratio, l.unit, l.target(), verdict, l.what, l.against)
	}
	n := len(slices.DeleteFunc(slices.Clone(ls), func(l line) bool { return !l.failed() }))
	if n > 0 {
		return fmt.Errorf("%d of %d targets are missed by more than %.0f %%, or could not be measured", n, len(ls), (margin-1)*100)
	}
	return nil
}

// markdown is a table; the first row is its head.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}
