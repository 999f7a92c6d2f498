// Package sharing answers: of the calls that two CPUs make at the same time, how
// many write memory that both write?
//
// Such a write takes the cache line away from the other CPU. It costs tens of
// nanoseconds, more with more CPUs, and makes a generator slower the more CPUs use
// it. On a machine with few CPUs timing does not show it, so it is counted: two
// goroutines make IDs as fast as they can, stop at the same moment, and one of
// them inspects a call. The memory reachable from the generator is compared, line
// by line, with a copy made before the call. A line counts as shared if calls on
// more than one processor changed it.
//
// The argument for many CPUs: a call that changes only lines which no other CPU
// changes costs the same beside 1 and beside 63 others. A shared line takes one
// write at a time, each for the time of moving the line to the CPU. So calls wait
// for it only if n CPUs together write it more often than that: n times the
// fraction of calls that write it, divided by the time of a call. The report has
// the n for the time that a write takes here, and for larger machines.
//
// A store of an unchanged value is not noticed, nor is a package variable. The
// former would show as time: see the rates of two goroutines.
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
	Calls  int     // that were looked at
	Shared int     // of them, those that changed a shared line
	Most   int     // of them, those that changed the line which is shared most
	Lines  float64 // changed by a call, on average
}

// Costs are the counts, and the times to compare them with.
type Costs struct {
	Counts []Count
	Call   float64 // ns of a NewIDs alone
	Write  float64 // ns from one write of a line to the next, when all CPUs write it
}

// Share is the fraction of calls that changed a shared line.
func (c Count) Share() float64 { return float64(c.Shared) / float64(c.Calls) }

// flatOut is the least number of calls between two inspected ones, and looks the
// number of inspected calls between two stops.
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
	// warmUp is longer than a new generator reads the clock for each ID, which
	// it does until it knows the rate of the counter.
	warmUp = 50 * time.Millisecond
)

// count inspects calls that change the memory reachable from root.
func count(root any, call func(), stops int) (Count, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // or the collector has the CPUs
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

// watcher compares the memory before and after calls of two goroutines. Both
// make calls, they meet, and while one waits the other's calls are inspected.
type watcher struct {
	root any
	call func()
	err  error

	meetings atomic.Int64
	writes   []write
}

// write is what one call changed, and the processor that made it.
type write struct {
	processor int
	lines     map[uintptr]bool
}

// meet waits until both goroutines are there.
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
	found, err := regions(w.root) // again: batches come and go
	if err != nil {
		return err
	}
	p := newPicture(found)
	for range looks {
		for range flatOut + random.IntN(256) { // as flat out as before, in this millisecond
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

// processor is the number of the goroutine's processor (a P of Go's scheduler).
// Goroutines are moved to another one now and then.
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

// larger are nanoseconds that a write takes on machines with many CPUs, assumed:
// within a socket and between two.
var larger = []float64{40, 100}

// enough is how many CPUs that make IDs flat out can share a line without
// waiting for it, if each write takes so long; a dash if that was not measured.
func (c Costs) enough(share, write float64) string {
	n := c.Call / (share * write)
	if math.IsNaN(n) {
		return "–"
	}
	return fmt.Sprintf("%.0f", n)
}

// Report is the section of the results.
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
	return fmt.Sprintf(`Counted, not timed: two goroutines make IDs as fast as they can, stop, and the memory that hangs from the generator is
compared before and after one call, in lines of 64 bytes. A line is shared if calls on more than one processor change it.

The last column is the argument for many CPUs. A line takes one write at a time. A call takes %s when it waits for
nobody, so calls begin to wait when n CPUs write the line more often than it can move: n × share / call > 1 / write. The
three numbers are for the write that was measured here (%s, %d CPUs), and for assumed ones of %.0f and %.0f ns, as
within a socket and between two. A service that makes 1000 IDs a millisecond on each CPU has some fifty times as many.

`, text.Ns(c.Call), text.Ns(c.Write), runtime.GOMAXPROCS(0), larger[0], larger[1]) + text.Table(rows)
}
