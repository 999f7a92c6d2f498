//go:build !nolinkname

package idgen

import (
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Few calls that make trace IDs write what other processors write: the order's word, the source's,
// the counts, the epoch. Only one goroutine runs here, so any change after a call is its own. With
// more processors, each has its own run and its own batch, and the same share of its calls writes:
// the cost of a call stays the same.
func TestSharedWritesAreFew(t *testing.T) {
	fills := 0
	w := newWorld()
	s := &hooked{private: newPrivate(w), filled: func() { fills++ }}
	g := w.generator(WithSource(s))
	type state struct {
		next, epoch, life, generation uint64
		traces, spans, borrowed       int64
		armed, falling                bool
		fills                         int
	}
	now := func() state {
		return state{g.order.next.Load(), g.clock.epoch.Load(), g.life.Load(), g.generation.Load(),
			g.counts.traces.Load(), g.counts.spans.Load(), g.counts.borrowed.Load(),
			g.clock.armed.Load(), g.falling.Load(), fills}
	}
	processor(t, g)
	w.learn(t, g)
	const calls = 2_000_000
	writes, before := 0, now()
	for range calls {
		w.pass(20 * time.Nanosecond)
		g.NewIDs(t.Context())
		if after := now(); after != before {
			writes, before = writes+1, after
		}
	}
	share := float64(writes) / calls
	t.Logf("%.2f %% of the calls write something shared", 100*share)
	if share > 0.02 {
		t.Errorf("%.2f %% of the calls write something shared, want at most 2 %%", 100*share)
	}
}

// A goroutine that stays on its processor gets increasing IDs, even if the stock that it used
// before returns with the rest of its run.
func TestRunEndsWhenItsStockIsTakenAway(t *testing.T) {
	w := newWorld()
	g := w.generator()
	processor(t, g)
	w.learn(t, g)
	w.pass(time.Millisecond)
	for range 100 { // so that a long run is left
		w.late(t, g)
	}
	away := g.shards.take(g.shards.pin())
	if away.last-away.word < 10 {
		t.Fatalf("only %d words are left in the run: the test is meaningless", away.last-away.word)
	}
	before, _ := g.NewIDs(t.Context()) // from another stock
	other := g.shards.take(g.shards.pin())
	g.shards.put(away)
	g.shards.put(other)
	after, _ := g.NewIDs(t.Context())
	if half(after) <= half(before) {
		t.Errorf("%s after %s", after, before)
	}
}

// Where the clock is read for each ID, a run is used up as well: else the trace IDs of
// many CPUs would use up a millisecond.
func TestRunSurvivesReadingTheClock(t *testing.T) {
	w := newWorld()
	g := w.generator() // it does not know the counter's rate
	processor(t, g)
	first, _ := g.NewIDs(t.Context())
	const n = 1000
	var last trace.TraceID
	for range n {
		last, _ = g.NewIDs(t.Context())
	}
	if got := half(last) - half(first); got != n {
		t.Errorf("%d trace IDs took %d clear halves", n, got)
	}
}

// A processor keeps its stock; another stock is pooled, and counted.
func TestProcessorKeepsItsStock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var c counts
	s := newShards(&c)
	first, second := new(stock), &stock{next: 3}
	s.put(first)
	s.put(second)
	if got := s.take(s.pin()); got != first {
		t.Error("the processor's stock was replaced")
	}
	if n := c.spans.Load(); n != 3 {
		t.Errorf("%d IDs of the other stock are counted, want 3", n)
	}
}

// A run is continued only on the processor that it was taken from.
func TestRunEndsOnAnotherProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newShards(new(counts))
	k := &stock{word: 3, last: 9}
	for _, c := range []struct {
		away *stock
		left uint64
	}{{k, 6}, {new(stock), 0}} {
		s.slots[0] = slot{away: c.away}
		s.put(k)
		if got := k.last - k.word; got != c.left {
			t.Errorf("a run of %d is left, want %d", got, c.left)
		}
	}
}

// A processor that was added later has no stock.
func TestProcessorWithoutASlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newShards(new(counts))
	s.slots = s.slots[:0]
	for range 3 {
		k, p := s.pin()
		if k != nil {
			t.Error("a processor without a slot has a stock")
		}
		s.put(s.take(k, p))
	}
}

func TestNewShardsLeavesTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	newShards(new(counts))
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d processors, want 3", n)
	}
}
