package idgen

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

const someMillis = 1_800_000_000_000

// The order may be ahead of the clock by less than the hold; a step back by the hold is a step.
func TestOrderIsAhead(t *testing.T) {
	o := new(order)
	floor := floorOf(someMillis)
	o.next.Store(floor + holdWords - 1)
	if first, ok := o.take(someMillis, 1); !ok || first != floor+holdWords-1 {
		t.Errorf("%d ahead, %v; want %d", first-floor, ok, holdWords-1)
	}
	if first, ok := o.take(someMillis, 1); ok {
		t.Errorf("%d ahead, which is the hold", first-floor)
	}
	for _, next := range []uint64{floor - 1, floor, floor + holdWords - 1} {
		o.next.Store(next)
		if o.follow(next, someMillis) {
			t.Errorf("being %d words ahead was taken for a step back", int64(next-floor))
		}
	}
	o.next.Store(floor + holdWords)
	if !o.follow(o.next.Load(), someMillis) || o.next.Load() != floor {
		t.Errorf("%d ahead, want 0", o.next.Load()-floor)
	}
}

// No word is zero, and a used-up sequence runs into the next millisecond.
func TestOrderAtItsEdges(t *testing.T) {
	o := new(order)
	for range 3 {
		if first, ok := o.take(traceid.EpochMillis, 1); first == 0 || !ok {
			t.Error(first, ok)
		}
	}
	if !o.follow(o.next.Add(10*holdWords), traceid.EpochMillis) || o.next.Load() != 1 {
		t.Errorf("after a step back to the epoch: %d", o.next.Load())
	}
	o.next.Store(5<<sequenceBits | maxSequence)
	for _, want := range []uint64{5<<sequenceBits | maxSequence, 6<<sequenceBits | 3} {
		if got, ok := o.take(traceid.EpochMillis+5, 4); got != want || !ok {
			t.Errorf("%x, %v, want %x", got, ok, want)
		}
	}
}

// The last millisecond of the layout starts again when its sequence is used up.
func TestOrderAtItsEnd(t *testing.T) {
	c := newClock(time.UnixMilli(traceid.EpochMillis + maxMillis))
	g := New(WithClock(c), WithSource(&tagged{clock: c}))
	g.order.next.Store(math.MaxUint64 - 10)
	for i := range 3 * longest {
		if id, _ := g.NewIDs(t.Context()); half(id)>>sequenceBits != maxMillis || g.Fallbacks() != 0 {
			t.Fatalf("call %d: %s", i, id)
		}
	}
	c.pass(time.Millisecond)
	if g.NewIDs(t.Context()); g.Fallbacks() != 1 {
		t.Errorf("%d fallbacks a millisecond later, want 1", g.Fallbacks())
	}
}

// No word is in two runs, even if many goroutines take runs at once.
func TestRunsAreDisjoint(t *testing.T) {
	const workers, each, n = 4, 200_000, 3
	o := new(order)
	var starts [workers][]uint64
	var wg sync.WaitGroup
	for w := range workers {
		starts[w] = make([]uint64, each)
		wg.Go(func() {
			for i := range each {
				starts[w][i], _ = o.take(someMillis, n)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(starts[:]...)
	slices.Sort(all)
	for i, first := range all {
		if want := floorOf(someMillis) + uint64(i)*n; first != want {
			t.Fatalf("run %d begins at %d, want %d", i, first, want)
		}
	}
}

// Runs grow while a millisecond is busy, and start again in the next.
func TestRuns(t *testing.T) {
	var o order
	var r run
	for _, ms := range []int64{traceid.EpochMillis + 10, traceid.EpochMillis + 11} {
		var got []uint64
		for range 11 {
			before := o.next.Load()
			if r.extend(&o, ms); o.next.Load() != r.last || r.word < before || !r.has(ms) || r.has(ms+1) {
				t.Errorf("run %+v, next %d", r, o.next.Load())
			}
			got = append(got, r.last-r.word)
		}
		if want := []uint64{1, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128}; !slices.Equal(got, want) {
			t.Errorf("the runs have lengths %d, want %d", got, want)
		}
	}
}

// A run survives a refill: as many clear halves are used as trace IDs are made.
func TestRunSurvivesARefill(t *testing.T) {
	c := newClock(noon)
	g := c.counted()
	onOne(t, g)
	first, _ := g.NewIDs(t.Context())
	const n = 2000
	for range n - 1 {
		g.NewIDs(t.Context())
	}
	if last, _ := g.NewIDs(t.Context()); half(last)-half(first) != n {
		t.Errorf("%d trace IDs took %d clear halves", n, half(last)-half(first))
	}
}

// If a goroutine is stopped while it reads the clock, the progress of others is not mistaken for a
// step of the clock. A real step is followed.
func TestOrderWhileTheClockIsRead(t *testing.T) {
	c := newClock(noon)
	s := &tagged{clock: c}
	g := New(WithClock(c), WithSource(s))
	first, _ := g.NewIDs(t.Context())
	var during uint64
	c.hook = func() {
		c.hook = nil
		c.pass(time.Minute) // the reading of noon is a minute old when it returns
		id, _ := g.NewIDs(t.Context())
		during = half(id)
	}
	after, _ := g.NewIDs(t.Context())
	if during <= half(first) || half(after) <= during || g.steps.Load() != 0 {
		t.Errorf("%d, %d, %d do not increase, or %d steps", half(first), during, half(after), g.steps.Load())
	}
	c.add(-time.Minute)
	if id, _ := g.NewIDs(t.Context()); !traceid.Time(id).Equal(noon) || g.steps.Load() != 1 {
		t.Errorf("after a step back: %v, %d steps", traceid.Time(id), g.steps.Load())
	}
}
