//go:build !nolinkname

package idgen

import (
	"testing"
	"time"
)

// Of calls that make trace IDs, few write what another processor writes: the
// order's word, the source's, the counts, the epoch. Only one goroutine runs
// here, so what has changed after a call was written by it. With more
// processors each has its own run and its own batch, and the same share of its
// calls writes: the cost of a call stays the same.
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

// A goroutine that stays on its processor gets increasing IDs, also when the
// stock that it used before comes back with what was left of its run.
func TestRunEndsWhenItsStockIsTakenAway(t *testing.T) {
	w := newWorld()
	g := w.generator()
	processor(t, g)
	w.learn(t, g)
	w.pass(time.Millisecond)
	for range 100 { // and so a long run is left
		w.late(t, g)
	}
	away := g.shards.take(g.shards.pin())
	if away.last-away.word < 10 {
		t.Fatalf("a run of %d is left: this test shows nothing", away.last-away.word)
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
