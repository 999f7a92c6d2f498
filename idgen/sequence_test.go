package idgen

import (
	"slices"
	"testing"

	"github.com/traceflake/traceflake/internal/layout"
)

// The sequence may be ahead of the clock by less than the hold; a step back by the hold is a step. A
// used-up sequence runs into the next millisecond, and no word is zero.
func TestSequence(t *testing.T) {
	const perMilli = layout.MaxSequence + 1
	for _, at := range []int64{layout.EpochMillis, 1_800_000_000_000} {
		s := new(sequence)
		floor := max(uint64(at-layout.EpochMillis)*perMilli, 1)
		take := func(ms int64, n, want uint64) {
			t.Helper()
			if first, ok := s.take(ms, n); ok != (want != 0) || first != want {
				t.Errorf("%d, %v; want %d", first, ok, want)
			}
		}
		take(at, perMilli, floor)
		take(at+1, 1, floor+perMilli)
		take(at, holdWords-perMilli-2, floor+perMilli+1)
		for _, next := range []uint64{floor - 1, floor, s.next.Load()} {
			if s.follow(next, at) {
				t.Errorf("being %d words ahead was taken for a step back", int64(next-floor))
			}
		}
		take(at, 1, floor+holdWords-1)
		take(at, 1, 0)
		before := s.next.Load()
		take(at+1, 1, before)
		if s.follow(before, at) {
			t.Error("the progress of others was taken for a step back")
		}
		if !s.follow(s.next.Load(), at) {
			t.Error("a step back by the hold was not noticed")
		}
		take(at, 1, floor)
	}
}

// Runs grow while a millisecond is busy, and start again in the next.
func TestRuns(t *testing.T) {
	var s sequence
	var r run
	for _, ms := range []int64{layout.EpochMillis + 10, layout.EpochMillis + 11} {
		r = run{} // as at the beginning of a millisecond
		var got []uint32
		for range 11 {
			before := s.next.Load()
			n := r.taken
			if ok := r.extend(&s, ms); !ok || s.next.Load() != r.word+uint64(r.left) ||
				r.word < before ||
				r.taken != n+r.left {
				t.Errorf("run %+v, next %d", r, s.next.Load())
			}
			got = append(got, r.left)
		}
		if want := []uint32{1, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128}; !slices.Equal(got, want) {
			t.Errorf("the runs have lengths %d, want %d", got, want)
		}
	}
}
