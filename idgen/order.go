package idgen

import (
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

// hold is how far the clock may step back while trace IDs go on from where
// they are. It is the bound of randflake's generators too, so that the halves
// of an ID stay together.
const hold = traceid.DefaultTolerance

const holdWords = uint64(hold/time.Millisecond) << sequenceBits

// order makes the clear halves: milliseconds << 23 | sequence, each greater
// than the one before. It is one word, for the same reasons as the word of a
// randflake.Generator: nothing that must agree lies apart. A sequence that is
// used up runs into the next millisecond.
type order struct {
	clock *coarse

	_    [64]byte // written for every trace ID; nothing that is read lies beside it
	word atomic.Uint64
	_    [56]byte

	steps atomic.Int64 // of the clock that were followed back
}

// next returns the next clear half at ms, milliseconds since the epoch, as
// the clock said it a moment ago. It is never zero. When the last one is further
// ahead than hold, the clock is read: if it was stepped back, the order follows.
func (o *order) next(ms uint64) uint64 {
	floor := ms << sequenceBits
	if word := o.word.Add(1); word >= floor && word-floor < holdWords {
		return word
	}
	return o.jump()
}

// jump moves the word to the clock's millisecond.
func (o *order) jump() uint64 {
	for {
		// The word is read before the clock: so a goroutine that was stopped
		// after reading the clock does not take others' progress for a step.
		word := o.word.Load()
		floor := clampMillis(o.clock.read()) << sequenceBits
		next := word + 1
		back := next >= floor && next-floor >= holdWords
		if next < floor || back {
			next = max(floor, 1)
		}
		if o.word.CompareAndSwap(word, next) {
			if back {
				o.steps.Add(1)
			}
			return next
		}
	}
}
