package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/traceflake/traceflake/bench/builds"
	"github.com/traceflake/traceflake/bench/idle"
	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
	"github.com/traceflake/traceflake/bench/pruning"
	"github.com/traceflake/traceflake/bench/rates"
	"github.com/traceflake/traceflake/bench/sharing"
	"github.com/traceflake/traceflake/bench/spans"
)

// figures are compared with the targets, and plotted.
type figures struct {
	rates   rates.Costs
	spans   spans.Costs
	sharing sharing.Costs
	idle    idle.Costs
	pruning pruning.Costs // without a target
}

// allowance is added to the limit of each ratio to the default if the CPU has no AVX-512.
const allowance = 0.15

// line is a target and its measurement.
type line struct {
	what  string
	got   float64 // NaN if it could not be measured
	most  float64
	unit  string
	noise float64 // how far the default differs from itself in the same run
	loud  float64 // noise above this makes the figure meaningless
	why   string  // the reason why it could not be measured
}

// met and missed may both be false: then the result is unknown. Figures are compared in
// hundredths, as the table shows them.
func (l line) met() bool {
	near := l.noise <= l.loud && hundredths(l.got) <= hundredths(l.most+l.noise)
	return l.why == "" && (near || hundredths(l.got+l.noise) <= hundredths(l.most))
}

func (l line) missed() bool {
	return l.why == "" && !l.met() && (l.noise <= l.loud || hundredths(l.got-l.noise) > hundredths(l.most))
}

func hundredths(x float64) float64 { return math.Round(100 * x) }

func (l line) verdict() string {
	switch {
	case l.why != "":
		return "not measured: " + l.why
	case math.IsNaN(l.got) || math.IsNaN(l.noise):
		return "not measured: too few turns had their CPUs"
	case l.missed():
		return fmt.Sprintf("missed by %s%s", figure(l.got-l.most), l.unit)
	case !l.met():
		return "not measured: the default differs too much from itself"
	case hundredths(l.got) > hundredths(l.most):
		return "met within the noise"
	}
	return "met"
}

func figure(x float64) string { return strconv.FormatFloat(hundredths(x)/100, 'f', -1, 64) }

// Noise above these limits makes a figure that is close to its target meaningless.
const (
	loudRatio = 0.05
	loudNs    = 20
	loudMs    = 0.5
)

// lines returns all targets.
func lines(f figures) (out []line) {
	more := 0.0
	if !builds.HasAVX512() {
		more = allowance
	}
	ratio := func(what string, r *turns.Result, of, to string, most float64) {
		l := line{what: what, most: most, loud: loudRatio}
		if r == nil {
			l.why = "no result"
		} else {
			l.got, l.noise = r.Ratio(of, to).Mid, r.Ratio(gens.Again, gens.Default).From(1)
		}
		out = append(out, l)
	}
	cell := func(op gens.Operation, r rates.Rate, n int) *turns.Result {
		return f.rates[rates.Cell{Op: op, Rate: r.Name, Goroutines: n}]
	}
	all := runtime.GOMAXPROCS(0)
	on := fmt.Sprintf("%d goroutines on %d CPUs", all, all)

	ratio("NewIDs to the default, one goroutine flat out", cell(gens.NewIDs, rates.FlatOut, 1), gens.Traceflake, gens.Default, 1.05+more)
	ratio("NewIDs to the default, 32 a millisecond", cell(gens.NewIDs, rates.Each32, 1), gens.Traceflake, gens.Default, 1.05+more)
	ratio("NewIDs to the default, "+on, several(cell, gens.NewIDs), gens.Traceflake, gens.Default, 1.05+more)
	for _, r := range []rates.Rate{rates.Each1ms, rates.Each20ms} {
		l := line{what: "NewIDs beyond the default, " + r.Name, most: 70, unit: " ns", loud: loudNs}
		if c := cell(gens.NewIDs, r, 1); c != nil {
			l.got, l.noise = c.Difference(gens.Traceflake, gens.Default).Mid, c.Difference(gens.Again, gens.Default).From(0)
		} else {
			l.why = "no result"
		}
		out = append(out, l)
	}
	ratio("NewSpanID to the default, one goroutine", cell(gens.NewSpanID, rates.FlatOut, 1), gens.Traceflake, gens.Default, 1.4+more)
	ratio("NewSpanID to the default, "+on, several(cell, gens.NewSpanID), gens.Traceflake, gens.Default, 1.4+more)
	for _, c := range spans.Cells() {
		ratio(fmt.Sprintf("Start+End of a root span to the default, %s sampled, %s", c.Sampled, c.Rate), f.spans[c], gens.Traceflake, gens.Default, 1.03+more)
	}
	out = append(out,
		line{
			what: "CPU time a second of 1000 trace IDs each 20 ms, beyond the default's", unit: " ms", most: 1,
			got: f.idle.BeyondDefault().Mid, noise: f.idle.Noise().From(0), loud: loudMs,
		},
		line{what: "timers or goroutines started a second by a generator in use", got: f.idle.StartedAtWork(), most: 1},
		line{what: "the same, idle", got: f.idle.StartedIdle(), most: 0},
	)
	shared := line{what: "NewIDs that write a shared line, both CPUs busy", unit: " %", most: 2, why: "this needs two CPUs"}
	for _, c := range f.sharing.Counts {
		if c.What == string(gens.NewIDs) {
			shared.got, shared.why = 100*c.Share(), ""
		}
	}
	out = append(out, shared)
	for _, op := range []gens.Operation{gens.NewIDs, gens.NewSpanID} {
		ratio(string(op)+" from a leased source to the private one", cell(op, rates.FlatOut, 1), gens.Leased, gens.Traceflake, 1.02)
	}
	return out
}

// several returns the cell of all CPUs, or nil if there is only one CPU.
func several(cell func(gens.Operation, rates.Rate, int) *turns.Result, op gens.Operation) *turns.Result {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return cell(op, rates.FlatOut, n)
	}
	return nil
}

// table formats the targets.
func table(ls []line) string {
	rows := [][]string{{"what", "measured", "at most", "noise", ""}}
	for _, l := range ls {
		measured := "–"
		if l.why == "" && !math.IsNaN(l.got) {
			measured = fmt.Sprintf("%.2f%s", l.got, l.unit)
		}
		rows = append(rows, []string{l.what, measured, figure(l.most) + l.unit, fmt.Sprintf("± %.2f", l.noise), l.verdict()})
	}
	return text.Table(rows)
}

// judgement returns an error with the number of missed targets.
func judgement(ls []line) error {
	missed := 0
	for _, l := range ls {
		if !l.met() {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d targets were missed or could not be measured", missed, len(ls))
	}
	return nil
}

// measureTargets measures only what has a target.
func measureTargets(ctx context.Context, progress io.Writer, p plan) (f figures, err error) {
	steps := []func() error{
		func() (err error) { f.rates, err = rates.Measure(ctx, progress, true, p.rounds); return err },
		func() (err error) { f.spans, err = spans.Measure(ctx, progress, p.rounds); return err },
		func() (err error) { f.sharing, err = sharing.Measure(ctx, p.stops); return err },
		func() (err error) { f.idle, err = idle.Measure(ctx, progress, p.part); return err },
	}
	for _, step := range steps {
		if err = errors.Join(err, step()); err != nil {
			return f, err
		}
	}
	return f, nil
}

// plan is how much is measured.
type plan struct {
	rounds int           // of each comparison
	stops  int           // at which the calls' writes are counted
	part   time.Duration // one of the twelve parts in which a process is watched
	rows   int           // in a table
	spans  int           // in the tables that are queried
}

var (
	full    = plan{rounds: 80, stops: 2000, part: time.Second, rows: 500_000, spans: 5_000_000}
	checked = plan{rounds: 60, stops: 1000, part: 500 * time.Millisecond}
	short   = plan{rounds: 10, stops: 100, part: 100 * time.Millisecond, rows: 20_000, spans: 400_000}
)
