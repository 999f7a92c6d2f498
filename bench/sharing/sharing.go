// Package sharing answers: of the calls that two CPUs make at the same time, how
// many write memory that both write?
//
// Such a write takes the cache line away from the other CPU. It costs some tens
// of nanoseconds, more with more CPUs, and is what makes a generator slower the
// more CPUs use it. On a machine with few CPUs no clock shows it, so it is
// counted: two goroutines make IDs as fast as they can, stop at the same moment,
// and one of them looks at a call. What the call changed in the memory that hangs
// from the generator is told by comparison with a picture of it, line by line. A
// line counts as shared if calls on more than one processor changed it.
//
// The argument for many CPUs: a call that changes only lines that nobody else
// changes costs the same beside 1 and beside 63 others. What remains is the share
// of calls that do write a shared line, times what the slowest of them waits.
//
// A store of the value that was there already is not seen, nor is a variable of
// a package. The former would show as time: see the rates of two goroutines.
package sharing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	_ "unsafe" // for linkname

	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/idgen"

	"go.opentelemetry.io/otel/trace"
)

// Count is what was counted for one kind of call.
type Count struct {
	What   string
	Calls  int     // that were looked at, of both goroutines
	Shared int     // of them, those that changed a line that both change
	Lines  float64 // changed by a call, on average
}

// Share is that of the calls which changed a shared line.
func (c Count) Share() float64 { return float64(c.Shared) / float64(c.Calls) }

// flatOut is at least how many calls are made between two that are looked at, and
// looks how many of those there are between two stops.
const (
	flatOut = 64
	looks   = 8
)

// Measure looks at some calls, stop by stop, of each of idgen's methods.
func Measure(ctx context.Context, stops int) ([]Count, error) {
	if runtime.GOMAXPROCS(0) < 2 {
		return nil, nil
	}
	g := idgen.New()
	var counts []Count
	for _, c := range []struct {
		op   gens.Operation
		call func()
	}{
		{gens.NewIDs, func() { g.NewIDs(ctx) }},
		{gens.NewSpanID, func() { g.NewSpanID(ctx, trace.TraceID{}) }},
	} {
		n, err := count(g, c.call, stops)
		if err != nil {
			return nil, fmt.Errorf("sharing: %s: %w", c.op, err)
		}
		n.What = string(c.op)
		counts = append(counts, n)
	}
	return counts, nil
}

// count looks at calls that change the memory which hangs from root.
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
// make calls, they meet, and while one waits the other one's calls are looked at.
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

// look makes calls and looks at some of them.
func (w *watcher) look(random *rand.Rand) error {
	found, err := regions(w.root) // anew: batches come and go
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
	changed := 0
	for _, call := range w.writes {
		c.Calls++
		changed += len(call.lines)
		for l := range call.lines {
			if shared[l] {
				c.Shared++
				break
			}
		}
	}
	c.Lines = float64(changed) / float64(max(c.Calls, 1))
	return c
}

// Report is the section of the results.
func Report(counts []Count) string {
	if len(counts) == 0 {
		return "Not counted: this needs two CPUs.\n"
	}
	rows := [][]string{{"", "calls", "lines changed a call", "calls that changed a shared line"}}
	for _, c := range counts {
		rows = append(rows, []string{c.What, fmt.Sprint(c.Calls), fmt.Sprintf("%.2f", c.Lines), fmt.Sprintf("%d (%.2f %%)", c.Shared, 100*c.Share())})
	}
	return `Counted, not timed: two goroutines make IDs as fast as they can, stop, and the memory that hangs from the generator is
compared before and after one call, in lines of 64 bytes.

` + text.Table(rows)
}
