// Package idle answers: what does a generator cost a process while it makes few
// IDs or none?
//
// A generator may run timers or goroutines to make each ID cheaper; a process that makes IDs in
// bursts also pays for them between the bursts. Each case is a separate process that is watched
// while it works or sleeps: its CPU time, how often it yielded its CPU, the goroutines that were
// started (each timer that fires starts one) and the goroutines that exist.
package idle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"syscall"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/bench/internal/child"
	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
)

// The bursts of a working process.
const (
	burst = 1000
	every = 20 * time.Millisecond
)

// Watched is what a process did in each part of the time.
type Watched struct {
	Part       time.Duration
	CPU        []float64 // milliseconds a second
	Wakes      []float64 // how often a second a thread yielded its CPU
	Started    []float64 // goroutines a second
	Goroutines int       // at the end
}

// The cases, which are also the names of the jobs of the processes.
const (
	Nothing    = "no generator, asleep"
	Unused     = "a generator that was never used, asleep"
	Used       = "a generator that was used a second ago, asleep"
	UsedLeased = "the same with a leased source"
	Default    = "1000 trace IDs each 20 ms, SDK default"
	Again      = "1000 trace IDs each 20 ms, SDK default again"
	Traceflake = "1000 trace IDs each 20 ms, traceflake"
	Seldom     = "1 trace ID each 20 ms, traceflake"
)

// Cases lists them in the report's order.
var Cases = []string{Nothing, Unused, Used, UsedLeased, Default, Again, Traceflake, Seldom}

// parts is the number of parts that an interval needs.
const parts = 12

// jobName is the name of the processes' job.
const jobName = "idle"

// Jobs returns what the processes do.
func Jobs() child.Jobs {
	return child.Jobs{jobName: func(args []string) (any, error) {
		if len(args) != 2 || !slices.Contains(Cases, args[0]) {
			return nil, fmt.Errorf("idle: want a case and the length of a part, got %q", args)
		}
		part, err := time.ParseDuration(args[1])
		if err != nil {
			return nil, fmt.Errorf("idle: %w", err)
		}
		return watch(args[0], part)
	}}
}

// watch prepares a case and watches this process.
func watch(c string, part time.Duration) (w Watched, err error) {
	ctx := context.Background()
	w.Part = part
	var g sdktrace.IDGenerator
	if c != Nothing {
		set, err := gens.New(ctx)
		if err != nil {
			return w, err
		}
		defer func() { err = errors.Join(err, set.Close(ctx)) }()
		switch c {
		case UsedLeased:
			g = set.Of(gens.Leased)
		case Default, Again:
			g = set.Of(gens.Default)
		default:
			g = set.Of(gens.Traceflake)
		}
	}
	n := 0
	switch c {
	case Default, Again, Traceflake:
		n = burst
	case Seldom:
		n = 1
	case Used, UsedLeased:
		bursts(g, burst, 10*every)
	}
	bursts(g, n, 1500*time.Millisecond) // until timers and goroutines that run for a second have ended
	debug.FreeOSMemory()                // otherwise the scavenger sometimes wakes
	bursts(g, n, 200*time.Millisecond)
	for range parts {
		before := now()
		bursts(g, n, part)
		after := now()
		w.CPU = append(w.CPU, float64((after.cpu-before.cpu)/time.Microsecond)/1000/part.Seconds())
		w.Wakes = append(w.Wakes, float64(after.wakes-before.wakes)/part.Seconds())
		w.Started = append(w.Started, float64(after.started-before.started)/part.Seconds())
	}
	w.Goroutines = runtime.NumGoroutine()
	return w, nil
}

// bursts makes n IDs at once in each period; if n is 0 it sleeps for the whole duration.
func bursts(g sdktrace.IDGenerator, n int, duration time.Duration) {
	if n == 0 {
		time.Sleep(duration)
		return
	}
	ctx := context.Background()
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(every) {
		for range n {
			g.NewIDs(ctx)
		}
	}
}

type counters struct {
	cpu     time.Duration
	wakes   int64
	started uint64
}

func now() counters {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for invalid arguments
	}
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return counters{time.Duration(u.Utime.Nano() + u.Stime.Nano()), u.Nvcsw, s[0].Value.Uint64()}
}

// Costs holds the results by case.
type Costs map[string]Watched

// Measure watches all cases, each for twelve parts of the given length.
func Measure(ctx context.Context, progress io.Writer, part time.Duration) (Costs, error) {
	costs := make(Costs)
	asleep, atWork := Cases[:4], Cases[4:7]
	for i, group := range [][]string{asleep, atWork, {Seldom}} {
		fmt.Fprintf(progress, "idle %d/3: %v for %d processes\n", i+1, parts*part, len(group))
		if err := costs.watch(ctx, part, group); err != nil {
			return nil, err
		}
	}
	return costs, nil
}

// watch measures some cases at the same time.
func (c Costs) watch(ctx context.Context, part time.Duration, group []string) (err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, name := range group {
		all.Go(func() {
			var w Watched
			failed := child.Ask(ctx, &w, jobName, name, part.String())
			mu.Lock()
			defer mu.Unlock()
			c[name], err = w, errors.Join(err, failed)
		})
	}
	all.Wait()
	return err
}

// BeyondDefault returns how many more milliseconds of CPU time a second a process takes that makes
// 1000 trace IDs each 20 ms, compared with the SDK's default generator.
func (c Costs) BeyondDefault() turns.Interval { return beyond(c[Traceflake].CPU, c[Default].CPU) }

// Noise returns the same for the default compared with itself.
func (c Costs) Noise() turns.Interval { return beyond(c[Again].CPU, c[Default].CPU) }

func beyond(a, b []float64) turns.Interval {
	more := make([]float64, min(len(a), len(b)))
	for i := range more {
		more[i] = a[i] - b[i]
	}
	return turns.Median(more)
}

// StartedAtWork returns how many goroutines a generator in use starts in a second, by timers or
// otherwise, or keeps running; in the worse of two cases.
func (c Costs) StartedAtWork() float64 {
	most := 0.0
	for _, name := range []string{Traceflake, Seldom} {
		most = max(most, c[name].started()-c[Default].started(), c.running(name))
	}
	return most
}

// StartedIdle returns the same for an idle generator, in the worst case.
func (c Costs) StartedIdle() float64 {
	most := 0.0
	for _, name := range []string{Unused, Used} {
		most = max(most, c[name].started(), c.running(name))
	}
	return most
}

// started returns the mean, because a timer may fire less than once in a part.
func (w Watched) started() float64 { return mean(w.Started) }

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// running returns how many more goroutines there are than with the default, which also runs beside
// a lease.
func (c Costs) running(name string) float64 {
	return float64(c[name].Goroutines - c[Default].Goroutines)
}

// Report returns the section of the results.
func (c Costs) Report() string {
	rows := [][]string{{"a process with", "CPU time a second", "wakes a second", "goroutines started a second"}}
	for _, name := range Cases {
		w := c[name]
		rows = append(rows, []string{
			name, fmt.Sprintf("%.2f ms", turns.Median(w.CPU).Mid),
			fmt.Sprintf("%.0f", turns.Median(w.Wakes).Mid), fmt.Sprintf("%.2f", w.started()),
		})
	}
	return fmt.Sprintf(`Each row is a separate process, watched in %d parts of %v; medians, but means for goroutines. Each timer that fires
starts a goroutine for its function. Wakes are voluntary context switches; the runtime itself causes some.

`, parts, c[Nothing].Part) + text.Table(rows)
}
