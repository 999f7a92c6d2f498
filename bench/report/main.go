// Command report compares the generators in the output of bench/run with their targets, and prints
// the cost of other libraries for IDs, in Markdown. Other lines of the output are for benchstat.
//
//	report runs.txt
//	report -check runs.txt   # only the targets; fails if one is missed
//
// A ratio is the median of the ratios of all rounds. The noise is the same ratio of the SDK's
// generator to itself: a target is missed only by more than that.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/sys/cpu"

	"github.com/traceflake/traceflake/bench"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	check := flags.Bool("check", false, "print only the targets, and fail if one is missed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one file that bench/run has written")
	}
	r, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	table, missed := r.targets()
	fmt.Fprintf(out, "%s\n%s", r.conditions(), table)
	if !*check {
		fmt.Fprintf(out, "\n%s", r.rivals())
		return nil
	}
	if missed > 0 {
		return fmt.Errorf("%d targets were missed or not measured", missed)
	}
	return nil
}

// runs holds the values of each benchmark, in the order of its rounds, and the machine's
// description by bench/run.
type runs struct {
	values map[cell][]float64
	config benchfmt.Result
}

// cell is one unit of a benchmark, such as NewIDs/rate=flat/gen=sdk-2 in ns/op.
type cell struct{ name, unit string }

// read returns the measurements of usual builds, in which nothing is left out.
func read(file string) (r runs, err error) {
	r.values = make(map[cell][]float64)
	lines := benchfmt.Files{Paths: []string{file}}
	for lines.Scan() {
		result, ok := lines.Result().(*benchfmt.Result)
		if !ok || result.GetConfig("without") != "nothing" {
			continue
		}
		for _, v := range result.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" {
				value, unit = v.OrigValue, v.OrigUnit
			}
			c := cell{string(result.Name.Full()), unit}
			r.values[c] = append(r.values[c], value)
		}
		r.config = *result.Clone()
	}
	if err := lines.Err(); err != nil {
		return r, err
	}
	if len(r.values) == 0 {
		return r, fmt.Errorf("%s contains no benchmark of a usual build", file)
	}
	return r, nil
}

// conditions returns where and how the values were measured.
func (r runs) conditions() string {
	rows := [][]string{{"", ""}}
	for _, key := range []string{
		"processor", "maker", "system", "go-version", "commit", "command", "date",
	} {
		rows = append(rows, []string{key, r.config.GetConfig(key)})
	}
	return table(rows)
}

// median returns NaN if the benchmark did not run.
func (r runs) median(name, unit string) float64 { return middle(r.values[cell{name, unit}]).Center }

func middle(values []float64) benchmath.Summary {
	if len(values) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95)
}

// ratio compares two generators in one benchmark, round by round.
func (r runs) ratio(name, of, to string) benchmath.Summary {
	with := func(gen string) []float64 {
		return r.values[cell{strings.Replace(name, "gen=*", "gen="+gen, 1), "ns/op"}]
	}
	a, b := with(of), with(to)
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return middle(ratios)
}

// kinds are the processors with targets: by maker, and by what the cipher uses there.
var kinds = []string{
	"AuthenticAMD, AVX-512", "AuthenticAMD, AVX2", "GenuineIntel, AVX-512", "GenuineIntel, AVX2",
}

// limits are the speed targets, as ratios to the SDK's generator, for each of the kinds.
var limits = []struct {
	what, name string
	most       [4]float64
}{
	{"NewIDs, one CPU", "NewIDs/rate=flat/gen=*", [4]float64{0.75, 0.95, 0.93, 1.15}},
	{"NewIDs, two CPUs", "NewIDs/rate=flat/gen=*-2", [4]float64{0.80, 0.95, 0.95, 1.15}},
	{"NewIDs, 32 a millisecond", "NewIDs/rate=32-a-ms/gen=*", [4]float64{0.75, 0.90, 0.95, 1.0}},
	{"NewSpanID, one CPU", "NewSpanID/rate=flat/gen=*", [4]float64{0.95, 1.15, 0.92, 1.25}},
	{"NewIDs, one each 20 ms, asleep between", "NewIDs/rate=1-each-20ms-asleep/gen=*",
		[4]float64{2.2, 2.2, 2.2, 2.2}},
	{"a root span, never sampled, 1000 a second", "Span/sampled=never/gen=*",
		[4]float64{1.10, 1.10, 1.10, 1.10}},
	{"a root span, always sampled, 1000 a second", "Span/sampled=always/gen=*",
		[4]float64{1.05, 1.05, 1.05, 1.05}},
}

// vectors is what the cipher uses here, as package sparx64 decides it.
var vectors = func() string {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2:
		return "AVX-512"
	case cpu.X86.HasAVX2:
		return "AVX2"
	}
	return "no vectors"
}()

// targets returns the table of limits and how many of them were missed or not measured. A processor
// of an unknown kind is not judged.
func (r runs) targets() (text string, missed int) {
	kind := slices.Index(kinds, r.config.GetConfig("maker")+", "+vectors)
	rows := [][]string{
		{"ratio to the SDK's generator", "measured", "at most", "the SDK to itself", ""},
	}
	for _, l := range limits {
		got, self := r.ratio(l.name, "traceflake", "sdk"), r.ratio(l.name, "again", "sdk")
		limit, verdict := "–", "not judged"
		if kind >= 0 {
			noise := max(math.Abs(self.Lo-1), math.Abs(self.Hi-1))
			limit = fmt.Sprintf("%.2f", l.most[kind])
			verdict = judge(got.Center, l.most[kind], noise)
			if !strings.HasPrefix(verdict, "met") {
				missed++
			}
		}
		rows = append(rows, []string{l.what, interval(got), limit, interval(self), verdict})
	}
	for _, name := range []string{
		"NewIDs/rate=flat/gen=traceflake", "NewSpanID/rate=flat/gen=traceflake",
	} {
		allocs, verdict := r.median(name, "allocs/op"), "met"
		if allocs != 0 { // also NaN
			verdict = "missed"
			missed++
		}
		rows = append(rows, []string{"allocations of " + name, number(allocs, ""), "0", "",
			verdict})
	}
	return table(rows), missed
}

// judge compares a ratio with its limit.
func judge(got, most, noise float64) (verdict string) {
	switch {
	case math.IsNaN(got) || math.IsNaN(noise):
		return "not measured"
	case noise > 0.2:
		return "not measured: too much other load"
	case got > most+noise:
		return fmt.Sprintf("missed by %.2f", got-most)
	case got > most:
		return "met within the noise"
	}
	return "met"
}

// rivals returns the table of other libraries for IDs.
func (r runs) rivals() string {
	rows := [][]string{{
		"generator", "unique", "sorts by", "hidden", "bits", "decodes to", "a call", "allocations",
	}}
	for _, v := range bench.Rivals {
		name := "Rival/" + v.Benchmark()
		rows = append(rows, []string{v.Who, v.Unique, v.Ordered, v.Hidden, v.Bits, v.Decodes,
			number(r.median(name, "ns/op"), " ns"), number(r.median(name, "allocs/op"), "")})
	}
	return table(rows)
}

func number(x float64, unit string) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case x == math.Trunc(x) || math.Abs(x) >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64) + unit
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + unit
}

func interval(s benchmath.Summary) string {
	if math.IsNaN(s.Center) {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Center, s.Lo, s.Hi)
}

// table formats rows in Markdown; the first is the head.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}
