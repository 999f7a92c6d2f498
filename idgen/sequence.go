package idgen

import (
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
)

// hold is how far the clock may step back while trace IDs continue from their position. It is also
// the bound of randflake's generators, so that the halves of an ID agree.
const hold = layout.Borrow

const holdWords = uint64(hold/time.Millisecond) << layout.SequenceBits

// sequence hands out clear halves, milliseconds << 23 | sequence, in runs. No word is in two runs,
// except after the clock has stepped back by more than hold. The state is a single word, so its
// parts cannot disagree. A sequence that is used up runs into the next millisecond.
type sequence struct {
	_    [64]byte // every goroutine writes next; no other data shares its cache line
	next atomic.Uint64
	_    [56]byte
}

// take takes n words at ms, in Unix milliseconds, and returns the first, which is never zero. It
// fails if ms is out of range, or if the next word is ahead of it by hold or more.
func (s *sequence) take(ms int64, n uint64) (first uint64, ok bool) {
	floor := floorOf(ms)
	if floor == 0 {
		return 0, false
	}
	for {
		next := s.next.Load()
		first = max(next, floor)
		if first-floor >= holdWords {
			return 0, false
		}
		if s.next.CompareAndSwap(next, first+n) {
			return first, true
		}
	}
}

// follow moves the sequence back to ms. next was read before the clock, so that a goroutine that
// was descheduled between the two does not mistake the progress of others for a step of the clock.
func (s *sequence) follow(next uint64, ms int64) bool {
	floor := floorOf(ms)
	return next > floor && next-floor >= holdWords && s.next.CompareAndSwap(next, floor)
}

// floorOf returns the least word of ms, or 0 if ms is out of range.
func floorOf(ms int64) uint64 {
	since := uint64(ms - layout.EpochMillis)
	if since > layout.MaxMillis { // before the epoch or after the end
		return 0
	}
	return max(since<<layout.SequenceBits, 1)
}

// run is a processor's share of the clear halves of a millisecond.
type run struct {
	word        uint64 // the next
	left, taken uint32 // words of this run, and of all runs of this millisecond
}

func (r *run) next() uint64 {
	r.word++
	r.left--
	return r.word - 1
}

// extend takes as many words as all earlier runs of this millisecond together, up to 128: a process
// that generates few trace IDs keeps them in order; one that generates many rarely writes the
// shared word.
func (r *run) extend(s *sequence, ms int64) bool {
	n := min(max(r.taken, 1), 128)
	first, ok := s.take(ms, uint64(n))
	if ok {
		r.word, r.left, r.taken = first, n, r.taken+n
	}
	return ok
}
