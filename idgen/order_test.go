package idgen

import (
	"slices"
	"testing"

	"github.com/traceflake/traceflake/internal/layout"
)

// The order may be ahead of the clock by less than the hold; a step back by the hold is a step. A
// used-up sequence runs into the next millisecond, and no word is zero.
func TestOrder(t *testing.T) {
	const perMilli = layout.MaxSequence + 1
	for _, at := range []int64{layout.EpochMillis, 1_800_000_000_000} {
		o := new(order)
		floor := max(uint64(at-layout.EpochMillis)*perMilli, 1)
		take := func(ms int64, n, want uint64) {
			t.Helper()
			if first, ok := o.take(ms, n); ok != (want != 0) || first != want {
				t.Errorf("%d, %v; want %d", first, ok, want)
			}
		}
		take(at, perMilli, floor)
		take(at+1, 1, floor+perMilli)
		take(at, holdWords-perMilli-2, floor+perMilli+1)
		for _, next := range []uint64{floor - 1, floor, o.next.Load()} {
			if o.follow(next, at) {
				t.Errorf("being %d words ahead was taken for a step back", int64(next-floor))
			}
		}
		take(at, 1, floor+holdWords-1)
		take(at, 1, 0)
		before := o.next.Load()
		take(at+1, 1, before)
		if o.follow(before, at) {
			t.Error("the progress of others was taken for a step back")
		}
		if !o.follow(o.next.Load(), at) {
			t.Error("a step back by the hold was not noticed")
		}
		take(at, 1, floor)
	}
}

// Runs grow while a millisecond is busy, and start again in the next.
func TestRuns(t *testing.T) {
	var o order
	var r run
	for _, ms := range []int64{layout.EpochMillis + 10, layout.EpochMillis + 11} {
		r = run{} // as at the beginning of a millisecond
		var got []uint32
		for range 11 {
			before := o.next.Load()
			n := r.taken
			if ok := r.extend(&o, ms); !ok || o.next.Load() != r.word+uint64(r.left) ||
				r.word < before ||
				r.taken != n+r.left {
				t.Errorf("run %+v, next %d", r, o.next.Load())
			}
			got = append(got, r.left)
		}
		if want := []uint32{1, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128}; !slices.Equal(got, want) {
			t.Errorf("the runs have lengths %d, want %d", got, want)
		}
	}
}
