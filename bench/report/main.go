// Command report turns the output of bench/run into the tables that the documents cite.
//
//	report runs.txt          # writes RESULTS.md next to it
//	report -check runs.txt   # prints the targets; fails if one is missed
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
	"path/filepath"
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
	check := flags.Bool("check", false, "check the targets and write nothing")
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
	if *check {
		table, missed := r.targets()
		fmt.Fprint(out, table)
		if missed > 0 {
			return fmt.Errorf("%d targets were missed or not measured", missed)
		}
		return nil
	}
	return os.WriteFile(filepath.Join(filepath.Dir(flags.Arg(0)), "RESULTS.md"), []byte(r.markdown()), 0o644)
}

// runs holds the values of each benchmark, in the order of its rounds.
type runs struct {
	head   map[string]string
	names  []string // benchmarks in the order of the file, each once
	values map[cell][]float64
}

// cell is one unit of a benchmark, such as NewIDs/rate=flat/gen=sdk-2 in ns/op, and what was left
// out of its build.
type cell struct{ name, unit, without string }

// conditions are the keys of a run's head.
var conditions = []string{"cpu", "system", "go-version", "commit", "command", "date"}

func read(file string) (*runs, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	r := &runs{head: make(map[string]string), values: make(map[cell][]float64)}
	lines := benchfmt.NewReader(f, file)
	for lines.Scan() {
		result, ok := lines.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name, left := string(result.Name.Full()), result.GetConfig("without")
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
		for _, v := range result.Values {
			value, unit := v.Value, v.Unit
			if v.OrigUnit != "" {
				value, unit = v.OrigValue, v.OrigUnit
			}
			c := cell{name, unit, left}
			r.values[c] = append(r.values[c], value)
		}
		for _, key := range conditions {
			if text := result.GetConfig(key); text != "" {
				r.head[key] = text
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(r.names) == 0 {
		return nil, fmt.Errorf("%s contains no benchmark", file)
	}
	return r, nil
}

// nothing is left out of a usual build.
const nothing = "nothing"

// median is NaN if the benchmark did not run.
func (r *runs) median(name, unit, without string) float64 {
	return middle(r.values[cell{name, unit, without}]).Center
}

func middle(values []float64) benchmath.Summary {
	if len(values) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), 0.95)
}

// ratio compares two generators in one benchmark, round by round.
func (r *runs) ratio(name, of, to, without string) benchmath.Summary {
	with := func(gen string) []float64 {
		return r.values[cell{strings.Replace(name, "gen=*", "gen="+gen, 1), "ns/op", without}]
	}
	a, b := with(of), with(to)
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return middle(ratios)
}

// limits are the speed targets, as ratios to the SDK's generator: at most full where the cipher
// uses AVX-512, and at most half elsewhere.
var limits = []struct {
	what, name string
	full, half float64
}{
	{"NewIDs, one CPU", "NewIDs/rate=flat/gen=*", 0.80, 1.05},
	{"NewIDs, two CPUs", "NewIDs/rate=flat/gen=*-2", 0.95, 1.10},
	{"NewIDs, 32 a millisecond", "NewIDs/rate=32-a-ms/gen=*", 0.90, 1.30},
	{"NewSpanID, one CPU", "NewSpanID/rate=flat/gen=*", 1.12, 1.25},
	{"NewIDs after a sleep of 20 ms", "NewIDs/rate=1-each-20ms-asleep/gen=*", 2.2, 2.2},
	{"a root span, never sampled, 1000 a second", "Span/sampled=never/rate=1000-a-s/gen=*", 1.10, 1.10},
	{"a root span, always sampled, 1000 a second", "Span/sampled=always/rate=1000-a-s/gen=*", 1.10, 1.10},
}

// wide reports whether the cipher uses AVX-512 here, as package sparx64 decides it.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2

// targets returns the table of limits and how many of them were missed or not measured.
func (r *runs) targets() (text string, missed int) {
	rows := [][]string{{"ratio to the SDK's generator", "measured", "at most", "the SDK to itself", ""}}
	for _, l := range limits {
		got, self := r.ratio(l.name, "traceflake", "sdk", nothing), r.ratio(l.name, "again", "sdk", nothing)
		most := l.half
		if wide {
			most = l.full
		}
		noise := max(math.Abs(self.Lo-1), math.Abs(self.Hi-1))
		verdict := "met"
		switch {
		case math.IsNaN(got.Center) || math.IsNaN(noise):
			verdict = "not measured"
		case noise > 0.2:
			verdict = "not measured: too much other load"
		case got.Center > most+noise:
			verdict = fmt.Sprintf("missed by %.2f", got.Center-most)
		case got.Center > most:
			verdict = "met within the noise"
		}
		if !strings.HasPrefix(verdict, "met") {
			missed++
		}
		rows = append(rows, []string{l.what, interval(got), fmt.Sprintf("%.2f", most), interval(self), verdict})
	}
	for _, name := range []string{"NewIDs/rate=flat/gen=traceflake", "NewSpanID/rate=flat/gen=traceflake"} {
		allocs, verdict := r.median(name, "allocs/op", nothing), "met"
		if allocs != 0 { // also NaN
			verdict = "missed"
			missed++
		}
		rows = append(rows, []string{"allocations of " + name, number(allocs, ""), "0", "", verdict})
	}
	return table(rows), missed
}

func (r *runs) markdown() string {
	var b strings.Builder
	section := func(title, text string, rows [][]string) {
		if len(rows) > 1 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n%s", title, text, table(rows))
		}
	}
	b.WriteString("# Measurements\n\nWritten by `make bench` from runs.txt, which benchstat reads too; not edited by hand.\n\n")
	head := [][]string{{"", ""}}
	for _, key := range conditions {
		head = append(head, []string{key, r.head[key]})
	}
	b.WriteString(table(head))
	targets, _ := r.targets()
	b.WriteString("\n## Targets\n\nRatios are medians over all rounds, with the interval of 95 % confidence. A target is missed only by more\n" +
		"than the SDK's generator differs from itself.\n\n" + targets)
	section("IDs", "Time of one call in its goroutine, medians. On several CPUs each of as many goroutines generates IDs at\n"+
		"the rate. Between bursts a goroutine watches the clock, which keeps caches warm; \"asleep\" shows a program\n"+
		"that sleeps.\n", r.generators("New", []string{"traceflake", "leased", "sdk", "xray"}))
	section("Whole spans", "Start and End of a root span, one goroutine.\n", r.generators("Span/", []string{"traceflake", "leased", "sdk"}))
	section("What can be left out", "One goroutine, flat out; each row is a separate build or setting.\n", r.ablation())
	section("Rivals", "One call, one goroutine, flat out. bwmarrin/snowflake spins and sony/sonyflake sleeps if more IDs are asked\n"+
		"for than the sequence has: their time is their limit.\n", r.rivals())
	section("B-tree keys", "Rows of a key and a bigint, in transactions of 1000 (COPY), into a table of PostgreSQL with a primary key; a\n"+
		"checkpoint before each quarter of the rows. The WAL, and the whole pages in it, are of the inserts alone.\n",
		r.counted("BTree/", "index-MiB", "leaf-%", "splits", "wal-MiB", "images-MiB", "ns/op"))
	section("Blocks left out", "Spans of one day, 8 in a trace, in the order in which they arrive; medians of 25 queries for one trace and of 25\n"+
		"for five minutes. Pages are those that PostgreSQL reads with a BRIN index. Parquet was measured once (commit\n"+
		"45a663f, DuckDB 1.5.6, 5 million spans): one trace read 1.2 of 113.5 MiB, with random IDs 20.3 of 117.6 MiB.\n",
		r.counted("Blocks/", "trace-pages", "window-pages", "pages", "brin-KiB", "btree-KiB"))
	return b.String()
}

// generators has a row for each benchmark with a prefix, and a column for each generator.
func (r *runs) generators(prefix string, gens []string) [][]string {
	rows := [][]string{append(append([]string{"benchmark"}, gens...), "traceflake to the SDK", "the SDK to itself")}
	for _, name := range r.names {
		if !strings.HasPrefix(name, prefix) || !strings.Contains(name, "gen=sdk") {
			continue
		}
		name = strings.Replace(name, "gen=sdk", "gen=*", 1)
		row := []string{strings.Replace(name, "/gen=*", "", 1)}
		for _, gen := range gens {
			row = append(row, number(r.median(strings.Replace(name, "gen=*", "gen="+gen, 1), "ns/op", nothing), " ns"))
		}
		rows = append(rows, append(row, interval(r.ratio(name, "traceflake", "sdk", nothing)), interval(r.ratio(name, "again", "sdk", nothing))))
	}
	return rows
}

func (r *runs) ablation() [][]string {
	rows := [][]string{{"without", "NewIDs", "to the SDK", "NewSpanID", "to the SDK"}}
	var parts []string
	for c := range r.values {
		if c.without != nothing && !slices.Contains(parts, c.without) {
			parts = append(parts, c.without)
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return nil
	}
	for _, part := range append([]string{nothing}, parts...) {
		row := []string{part}
		for _, method := range []string{"NewIDs", "NewSpanID"} {
			name := method + "/rate=flat/gen=*"
			row = append(row, number(r.median(strings.Replace(name, "*", "traceflake", 1), "ns/op", part), " ns"), interval(r.ratio(name, "traceflake", "sdk", part)))
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *runs) rivals() [][]string {
	rows := [][]string{{"generator", "unique", "sorts by", "hidden", "bits", "decodes to", "a call", "allocations"}}
	for _, v := range bench.Rivals {
		name := "Rival/id=" + strings.ReplaceAll(strings.ReplaceAll(v.Who, " ", "-"), "/", ".")
		if slices.Contains(r.names, name) {
			rows = append(rows, []string{v.Who, v.Unique, v.Ordered, v.Hidden, v.Bits, v.Decodes,
				number(r.median(name, "ns/op", nothing), " ns"), number(r.median(name, "allocs/op", nothing), "")})
		}
	}
	return rows
}

// counted has a row for each benchmark with a prefix, and a column for each unit.
func (r *runs) counted(prefix string, units ...string) [][]string {
	rows := [][]string{append([]string{"benchmark"}, units...)}
	for _, name := range r.names {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			row := []string{rest}
			for _, unit := range units {
				row = append(row, number(r.median(name, unit, nothing), ""))
			}
			rows = append(rows, row)
		}
	}
	return rows
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
