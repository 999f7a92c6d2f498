// Package sharing answers: how many calls write memory that two CPUs both write?
//
// Such a write takes the cache line away from the other CPU. It costs tens of nanoseconds, more on
// machines with more CPUs, and slows a generator down as more CPUs use it. Timing does not show it
// on a machine with few CPUs, so it is counted: two goroutines make IDs as fast as they can, stop
// at the same moment, and one of them inspects a call. The memory reachable from the generator is
// compared, line by line, with a copy made before the call. A line counts as shared if calls on
// more than one processor changed it.
//
// The argument for many CPUs: a call that changes only lines which no other CPU changes costs the
// same on 1 CPU as on 64. A shared line takes one write at a time; each write takes as long as
// moving the line to the CPU. So calls wait for the line only if n CPUs together write it more
// often than that: n times the fraction of calls that write it, divided by the time of a call. The
// report has this n for the time that a write takes here, and for larger machines.
//
// Stores of an unchanged value go unnoticed, as do writes to package variables. Unchanged values
// would still cost time: see the rates of two goroutines.
package sharing

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	_ "unsafe" // for linkname

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
	"github.com/traceflake/traceflake/idgen"
)

// Count is what was counted for one kind of call.
type Count struct {
	What   string
	Calls  int     // inspected calls
	Shared int     // calls among them that changed a shared line
	Most   int     // calls among them that changed the most shared line
	Lines  float64 // changed by a call, on average
}

// Costs holds the counts, and the times to compare them with.
type Costs struct {
	Counts []Count
	Call   float64 // ns of a NewIDs on one CPU
	Write  float64 // ns from one write of a line to the next, when all CPUs write it
}

// Share returns the fraction of calls that changed a shared line.
func (c Count) Share() float64 { return float64(c.Shared) / float64(c.Calls) }

// flatOut is the least number of calls between two inspected ones; looks is the number of
// inspected calls between two stops.
const (
	flatOut = 64
	looks   = 8
)

// Measure inspects some calls of each of idgen's methods, stop by stop.
func Measure(ctx context.Context, stops int) (c Costs, err error) {
	cpus := runtime.GOMAXPROCS(0)
	if cpus < 2 {
		return c, nil
	}
	g := idgen.New()
	for _, one := range []struct {
		op   gens.Operation
		call func()
	}{
		{gens.NewIDs, func() { g.NewIDs(ctx) }},
		{gens.NewSpanID, func() { g.NewSpanID(ctx, trace.TraceID{}) }},
	} {
		for begin := time.Now(); time.Since(begin) < warmUp; {
			one.call()
		}
		n, err := count(g, one.call, stops)
		if err != nil {
			return c, fmt.Errorf("sharing: %s: %w", one.op, err)
		}
		n.What = string(one.op)
		c.Counts = append(c.Counts, n)
	}
	alone := turns.Subject{Name: "call", Run: func(n int) {
		for range n {
			g.NewIDs(ctx)
		}
	}}
	var word atomic.Uint64
	write := turns.Subject{Name: "write", Run: func(n int) {
		for range n {
			word.Add(1)
		}
	}}
	c.Call = turns.FlatOut([]turns.Subject{alone}, 1, turnsOfBoth, time.Millisecond).Ns(alone.Name)
	c.Write = turns.FlatOut([]turns.Subject{write}, cpus, turnsOfBoth, time.Millisecond).Ns(write.Name) / float64(cpus)
	return c, nil
}

const (
	turnsOfBoth = 50
	// warmUp is longer than a new generator reads the clock for each ID, which it does until it
	// knows the rate of the counter.
	warmUp = 50 * time.Millisecond
)

// count inspects calls that change the memory reachable from root.
func count(root any, call func(), stops int) (Count, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // otherwise the collector takes the CPUs
	w := watcher{root: root, call: call}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.goroutine(1, stops)
	}()
	w.goroutine(0, stops)
	<-done
	return w.count(), w.err
}

// watcher compares the memory before and after calls of two goroutines. Both make calls and then
// stop together; while one waits, the other one's calls are inspected.
type watcher struct {
	root any
	call func()
	err  error

	meetings atomic.Int64
	writes   []write
}

// write is what one call changed, and the processor that executed it.
type write struct {
	processor int
	lines     map[uintptr]bool
}

// meet waits until both goroutines have called it.
func (w *watcher) meet(n *int64) {
	*n += 2
	for w.meetings.Add(1); w.meetings.Load() < *n; {
	}
}

func (w *watcher) goroutine(self, stops int) {
	var met int64
	random := rand.New(rand.NewPCG(uint64(self), 1))
	for stop := range 2 * stops {
		for range flatOut + random.IntN(256) {
			w.call()
		}
		w.meet(&met)
		if self == stop%2 && w.err == nil {
			w.err = w.look(random)
		}
		w.meet(&met)
	}
}

// look makes calls and inspects some of them.
func (w *watcher) look(random *rand.Rand) error {
	found, err := regions(w.root) // again, because batches are replaced
	if err != nil {
		return err
	}
	p := newPicture(found)
	for range looks {
		for range flatOut + random.IntN(256) { // get back to full speed within this millisecond
			w.call()
		}
		now := write{processor(), make(map[uintptr]bool)}
		p.take()
		w.call()
		p.changed(now.lines)
		if processor() == now.processor {
			w.writes = append(w.writes, now)
		}
	}
	return nil
}

// processor returns the number of the goroutine's processor (a P of Go's scheduler). The scheduler
// sometimes moves goroutines to another one.
func processor() int {
	p := procPin()
	procUnpin()
	return p
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

func (w *watcher) count() (c Count) {
	owner, shared := make(map[uintptr]int), make(map[uintptr]bool)
	for _, call := range w.writes {
		for l := range call.lines {
			if first, ok := owner[l]; ok && first != call.processor {
				shared[l] = true
			}
			owner[l] = call.processor
		}
	}
	changed, by := 0, make(map[uintptr]int)
	for _, call := range w.writes {
		c.Calls++
		changed += len(call.lines)
		touched := false
		for l := range call.lines {
			if shared[l] {
				touched = true
				by[l]++
				c.Most = max(c.Most, by[l])
			}
		}
		if touched {
			c.Shared++
		}
	}
	c.Lines = float64(changed) / float64(max(c.Calls, 1))
	return c
}

// larger holds assumed nanoseconds of a write on machines with many CPUs: within a socket and
// between two.
var larger = []float64{40, 100}

// enough returns how many CPUs that make IDs flat out can share a line without waiting, if each
// write takes the given time; a dash if the time was not measured.
func (c Costs) enough(share, write float64) string {
	n := c.Call / (share * write)
	if math.IsNaN(n) {
		return "–"
	}
	return fmt.Sprintf("%.0f", n)
}

// Report returns the section of the results.
func (c Costs) Report() string {
	if len(c.Counts) == 0 {
		return "Not counted: this needs two CPUs.\n"
	}
	rows := [][]string{{"", "calls", "lines changed a call", "calls that changed a shared line", "the same line", "CPUs flat out until calls wait for it"}}
	for _, n := range c.Counts {
		cpus := "–"
		if share := float64(n.Most) / float64(n.Calls); share > 0 && n.What == string(gens.NewIDs) {
			cpus = fmt.Sprintf("%s, %s, %s", c.enough(share, c.Write), c.enough(share, larger[0]), c.enough(share, larger[1]))
		}
		rows = append(rows, []string{n.What, fmt.Sprint(n.Calls), fmt.Sprintf("%.2f", n.Lines),
			fmt.Sprintf("%d (%.2f %%)", n.Shared, 100*n.Share()), fmt.Sprint(n.Most), cpus})
	}
	return fmt.Sprintf(`Counted, not timed: two goroutines make IDs as fast as they can and stop; the memory reachable from the generator is
compared before and after one call, in lines of 64 bytes. A line is shared if calls on more than one processor change it.

The last column is the argument for many CPUs. A line takes one write at a time. A call that does not wait takes %s, so
calls begin to wait when n CPUs write the line more often than it can move: n × share / call > 1 / write. The three
numbers are for the write time measured here (%s, %d CPUs) and for assumed times of %.0f and %.0f ns, as within a socket
and between two. For a service that makes 1000 IDs a millisecond on each CPU, the numbers are some fifty times as large.

`, text.Ns(c.Call), text.Ns(c.Write), runtime.GOMAXPROCS(0), larger[0], larger[1]) + text.Table(rows)
}
