package idgen

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// turns are short; each returns the nanoseconds per call.
var turns = map[string]func(g sdktrace.IDGenerator) float64{
	"NewIDs flat out": func(g sdktrace.IDGenerator) float64 {
		const n = 20_000
		start := time.Now()
		for range n {
			g.NewIDs(context.Background())
		}
		return float64(time.Since(start)) / n
	},
	"NewSpanID flat out": func(g sdktrace.IDGenerator) float64 {
		const n = 20_000
		start := time.Now()
		for range n {
			g.NewSpanID(context.Background(), trace.TraceID{})
		}
		return float64(time.Since(start)) / n
	},
	"NewIDs 32 a ms":        func(g sdktrace.IDGenerator) float64 { return each(time.Millisecond, 20, 32, g) },
	"NewIDs one a ms":       func(g sdktrace.IDGenerator) float64 { return each(time.Millisecond, 20, 1, g) },
	"NewIDs one each 20 ms": func(g sdktrace.IDGenerator) float64 { return each(20*time.Millisecond, 3, 1, g) },
	"NewIDs on every CPU":   func(g sdktrace.IDGenerator) float64 { return onEvery(func() { g.NewIDs(context.Background()) }) },
	"NewSpanID on every CPU": func(g sdktrace.IDGenerator) float64 {
		return onEvery(func() { g.NewSpanID(context.Background(), trace.TraceID{}) })
	},
}

// each makes n IDs in each of several periods, and returns the nanoseconds per ID in the median
// period. They include the time of time.Now.
func each(period time.Duration, periods, n int, g sdktrace.IDGenerator) float64 {
	took := make([]float64, periods)
	for i := range took {
		start := time.Now()
		for range n {
			g.NewIDs(context.Background())
		}
		took[i] = float64(time.Since(start)) / float64(n)
		for time.Since(start) < period {
		}
	}
	slices.Sort(took)
	return took[periods/2]
}

func onEvery(f func()) float64 {
	const n = 40_000
	var wg sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range n {
				f()
			}
		})
	}
	wg.Wait()
	return float64(time.Since(start)) / n
}

// BenchmarkRates compares with the SDK's default generator, in turns: bare loops over the
// interface, the median and the minimum of the turns of each.
func BenchmarkRates(b *testing.B) {
	g := New()
	for name, turn := range turns {
		b.Run(name, func(b *testing.B) {
			var ours, theirs []float64
			for b.Loop() {
				theirs = append(theirs, turn(sdkDefault{}))
				ours = append(ours, turn(g))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours[0], "least-ns")
			b.ReportMetric(theirs[0], "default-least-ns")
			b.ReportMetric(ours[0]/theirs[0], "least-ratio")
			b.ReportMetric(ours[len(ours)/2]/theirs[len(theirs)/2], "median-ratio")
		})
	}
}
