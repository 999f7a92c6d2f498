// Package spans answers: what does the generator add to a whole span?
//
// The IDs are a small part of the cost of Start and End. Spans are measured with the SDK's default
// generator, with ours, and with the default once more, at a thousand a second and flat out,
// sampled and unsampled.
package spans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
)

// Cell is a kind of span at a rate.
type Cell struct {
	Sampled string // never or always
	Rate    string
}

// The rates.
const (
	Thousand = "1000 a second"
	FlatOut  = "flat out"
)

// Costs holds the results by cell.
type Costs map[Cell]*turns.Result

// Cells returns all cells.
func Cells() (cells []Cell) {
	for _, rate := range []string{Thousand, FlatOut} {
		for _, sampled := range []string{"never", "always"} {
			cells = append(cells, Cell{sampled, rate})
		}
	}
	return cells
}

// Measure measures root spans. Each round has its own providers, because their place in memory
// makes a difference of a few per cent.
func Measure(ctx context.Context, progress io.Writer, rounds int) (Costs, error) {
	set, err := gens.New(ctx)
	if err != nil {
		return nil, err
	}
	costs := make(Costs)
	for i, c := range Cells() {
		fmt.Fprintf(progress, "spans %d/%d: %s sampled, %s\n", i+1, len(Cells()), c.Sampled, c.Rate)
		r := new(turns.Result)
		for range rounds {
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(err, set.Close(ctx))
			}
			r.Add(c.measure(set))
		}
		costs[c] = r
	}
	return costs, set.Close(ctx)
}

// A round has few turns, because garbage makes long rounds differ.
func (c Cell) measure(set *gens.Set) *turns.Result {
	sampler := sdktrace.NeverSample()
	if c.Sampled == "always" {
		sampler = sdktrace.AlwaysSample()
	}
	var subjects []turns.Subject
	// Each code is entered twice, or one would be warmer in the caches.
	for _, name := range []string{gens.Default, gens.Traceflake, gens.Leased, gens.Again} {
		p := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(set.Of(name)))
		tracer := p.Tracer("bench")
		subjects = append(subjects, turns.Subject{Name: name, Run: func(n int) { startEnd(tracer, n) }})
	}
	if c.Rate == FlatOut {
		return turns.FlatOut(subjects, 1, 2, 10*time.Millisecond)
	}
	return turns.Paced(subjects, 1, 1, 100, turns.Pace{Burst: 1, Every: time.Millisecond})
}

//go:noinline
func startEnd(t trace.Tracer, n int) {
	ctx := context.Background()
	for range n {
		_, span := t.Start(ctx, "span")
		span.End()
	}
}

// Report returns the section of the results.
func (c Costs) Report() string {
	rows := [][]string{{"root span", "rate", "traceflake", "SDK default", "ratio", "default to itself"}}
	for _, cell := range Cells() {
		r := c[cell]
		if r == nil {
			continue
		}
		ratio := r.Ratio(gens.Traceflake, gens.Default)
		rows = append(rows, []string{cell.Sampled + " sampled", cell.Rate, text.Ns(r.Ns(gens.Traceflake)), text.Ns(r.Ns(gens.Default)),
			fmt.Sprintf("%s (%s)", ratio, ratio.Range()), r.Ratio(gens.Again, gens.Default).Range()})
	}
	return "Start and End of a root span, one goroutine, medians; in brackets the interval that contains the true ratio in 95 of\n" +
		"100 runs. Each round has its own providers.\n\n" + text.Table(rows)
}
