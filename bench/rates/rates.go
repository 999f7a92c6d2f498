// Package rates answers: what does an ID cost at the rates of real services, on one CPU and on
// all?
//
// A tight loop shows the cost in a program that does nothing else. A service makes some IDs each
// millisecond, or only a few a second, and then a generator may have to read the clock. So the
// calls come in bursts, one in each period, and each burst is timed; loops that run flat out are
// the comparison.
package rates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
)

// Rate is how often an ID is made; with several goroutines, in each of them.
type Rate struct {
	Name string
	turns.Pace
	periods int // in a round
}

// The rates, slowest first. FlatOut has no pace.
var (
	Each20ms = Rate{"one each 20 ms", turns.Pace{Burst: 1, Every: 20 * time.Millisecond}, 5}
	Each1ms  = Rate{"1 a millisecond", turns.Pace{Burst: 1, Every: time.Millisecond}, 40}
	Each32   = Rate{"32 a millisecond", turns.Pace{Burst: 32, Every: time.Millisecond}, 40}
	Each1000 = Rate{"1000 a millisecond", turns.Pace{Burst: 1000, Every: time.Millisecond}, 40}
	FlatOut  = Rate{Name: "flat out"}
	// Asleep makes one each 20 ms as real programs do: with cold caches.
	Asleep = Rate{"one each 20 ms, asleep between", turns.Pace{Burst: 1, Every: 20 * time.Millisecond, Asleep: true}, 5}
)

// turnLength is the length of a turn of a loop that runs flat out.
const turnLength = 2 * time.Millisecond

// sessions is the number of new sets of generators: their place in memory makes a difference of a
// few per cent.
const sessions = 5

// Cell is one operation at one rate.
type Cell struct {
	Op         gens.Operation
	Rate       string
	Goroutines int
}

// Costs holds the results by cell.
type Costs map[Cell]*turns.Result

// plan is a cell with its pace and the generators to measure.
type plan struct {
	op         gens.Operation
	rate       Rate
	goroutines int
	names      []string
}

func (p plan) cell() Cell { return Cell{p.op, p.rate.Name, p.goroutines} }

var (
	// Each code is entered twice; otherwise one would be warmer in the caches.
	four = []string{gens.Default, gens.Traceflake, gens.Leased, gens.Again}
	five = []string{gens.Default, gens.Traceflake, gens.Leased, gens.Again, gens.XRay}
)

// judged returns the cells with a target.
func judged() (list []plan) {
	for _, n := range gens.Crowds() {
		list = append(list, plan{gens.NewIDs, FlatOut, n, four}, plan{gens.NewSpanID, FlatOut, n, four})
	}
	for _, r := range []Rate{Each32, Each1ms, Each20ms} {
		list = append(list, plan{gens.NewIDs, r, 1, four})
	}
	return list
}

// all returns the cells of the report.
func all() (list []plan) {
	for _, n := range gens.Crowds() {
		for _, r := range []Rate{Each20ms, Each1ms, Each32, Each1000, FlatOut} {
			list = append(list, plan{gens.NewIDs, r, n, five}, plan{gens.NewSpanID, r, n, four})
		}
	}
	return append(list, plan{gens.NewIDs, Asleep, 1, five}, plan{gens.NewSpanID, Asleep, 1, four})
}

// Measure measures every cell, or only the cells that have a target.
func Measure(ctx context.Context, progress io.Writer, onlyJudged bool, rounds int) (Costs, error) {
	list := all()
	if onlyJudged {
		list = judged()
	}
	costs := make(Costs)
	for i, p := range list {
		fmt.Fprintf(progress, "rates %d/%d: %s, %s, %d goroutines\n", i+1, len(list), p.op, p.rate.Name, p.goroutines)
		r := new(turns.Result)
		for range min(sessions, rounds) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			one, err := p.measure(ctx, max(rounds/sessions, 1))
			if err != nil {
				return nil, err
			}
			r.Add(one)
		}
		costs[p.cell()] = r
	}
	return costs, nil
}

func (p plan) measure(ctx context.Context, rounds int) (*turns.Result, error) {
	set, err := gens.New(ctx)
	if err != nil {
		return nil, err
	}
	subjects := set.Subjects(p.op, p.names...)
	var r *turns.Result
	if p.rate.Burst == 0 {
		r = turns.FlatOut(subjects, p.goroutines, 8*rounds, turnLength) // turns are short
	} else {
		r = turns.Paced(subjects, p.goroutines, rounds, p.rate.periods, p.rate.Pace)
	}
	return r, errors.Join(ctx.Err(), set.Close(ctx))
}

// Report returns the section of the results.
func (c Costs) Report() string {
	rows := [][]string{{"", "goroutines", "rate", "traceflake", "leased", "SDK default", "X-Ray", "to the default", "default to itself", "more"}}
	for _, op := range []gens.Operation{gens.NewIDs, gens.NewSpanID} {
		for _, p := range all() {
			r := c[p.cell()]
			if p.op != op || r == nil {
				continue
			}
			rows = append(rows, []string{
				string(op), fmt.Sprint(p.goroutines), p.rate.Name,
				text.Ns(r.Ns(gens.Traceflake)), text.Ns(r.Ns(gens.Leased)), text.Ns(r.Ns(gens.Default)), text.Ns(r.Ns(gens.XRay)),
				r.Ratio(gens.Traceflake, gens.Default).String(),
				r.Ratio(gens.Again, gens.Default).Range(),
				text.Ns(r.Difference(gens.Traceflake, gens.Default).Mid),
			})
		}
	}
	return `Time per call in its goroutine, medians. With several goroutines, each makes IDs at the rate, with all bursts at the
same moments. Between bursts the goroutine watches the clock, which keeps the clock's code in the caches; "asleep" shows
the cost in a program that really sleeps. The time for reading the clock around a burst is subtracted.
X-Ray makes span IDs as the default does. "Default to itself" is the interval of the ratio of the SDK's default
generator to itself, entered a second time: smaller differences cannot be told apart.

` + text.Table(rows) + "\n![Cost of NewIDs against rate](plots/cost.svg)\n"
}
