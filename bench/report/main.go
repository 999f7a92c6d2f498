// Command report compares the generators in the output of bench/run with their targets, in
// Markdown; benchstat shows the rest of the output. It fails if a target was missed.
//
//	report runs.txt
//
// A ratio is the median of the ratios of all rounds. The noise is the same ratio of the SDK's
// generator to itself: a target is missed only by more than that.
package main

import (
	_ "embed" // the template and the targets
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

func main() {
	missed, err := run(os.Args[1], os.Stdout)
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d targets were missed or not measured", missed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

//go:embed report.md.tmpl
var page string

// The speed targets, as ratios to the SDK's generator, by the maker of the processor and what the
// cipher uses there.
//
//go:embed targets.json
var targetsJSON []byte

// target is a benchmark whose name has a star for the generator, and the result of comparing it.
type target struct {
	What, Benchmark string
	Most            map[string]float64

	Measured, Self benchmath.Summary
	Verdict        string
}

// run writes the report, and returns how many targets were missed or not measured.
func run(file string, out io.Writer) (missed int, err error) {
	values, about, err := read(file)
	if err != nil {
		return 0, err
	}
	kind := about.GetConfig("maker") + ", " + about.GetConfig("vectors")
	var targets []*target
	if err := json.Unmarshal(targetsJSON, &targets); err != nil {
		return 0, err
	}
	for _, t := range targets {
		t.Measured = ratio(values, t.Benchmark, "traceflake")
		t.Self = ratio(values, t.Benchmark, "again")
		if t.Verdict = t.judge(kind); t.Verdict != "" && !strings.HasPrefix(t.Verdict, "met") {
			missed++
		}
	}
	return missed, template.Must(template.New("").Parse(page)).Execute(out,
		map[string]any{"About": about, "Kind": kind, "Targets": targets})
}

// read returns the times of each benchmark in usual builds, in which nothing is left out, in the
// order of its rounds, and the machine's description by bench/run.
func read(file string) (values map[string][]float64, about *benchfmt.Result, err error) {
	values = make(map[string][]float64)
	lines := benchfmt.Files{Paths: []string{file}}
	for lines.Scan() {
		result, ok := lines.Result().(*benchfmt.Result)
		if !ok || result.GetConfig("without") != "nothing" {
			continue
		}
		about = result.Clone()
		if v, ok := result.Value("sec/op"); ok {
			name := string(result.Name.Full())
			values[name] = append(values[name], v)
		}
	}
	if about == nil && lines.Err() == nil {
		return nil, nil, fmt.Errorf("%s contains no benchmark of a usual build", file)
	}
	return values, about, lines.Err()
}

// ratio compares a generator with the SDK's in one benchmark, round by round.
func ratio(values map[string][]float64, benchmark, gen string) benchmath.Summary {
	a, b := values[strings.Replace(benchmark, "*", gen, 1)],
		values[strings.Replace(benchmark, "*", "sdk", 1)]
	ratios := make([]float64, min(len(a), len(b)))
	if len(ratios) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	sample := benchmath.NewSample(slices.Clone(ratios), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95)
}

// judge compares a ratio with its limit on a kind of processor. One without limits is not judged.
func (t *target) judge(kind string) string {
	most, judged := t.Most[kind]
	noise := max(math.Abs(t.Self.Lo-1), math.Abs(t.Self.Hi-1))
	switch got := t.Measured.Center; {
	case !judged:
		return ""
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
