package idgen

import (
	"time"

	"github.com/traceflake/traceflake/internal/layout"
)

const (
	trusted = layout.Noticed
	// maxPause is how long reading both clocks may take. If it took longer, the goroutine was
	// stopped between them, and the monotonic clock does not stand in for the wall clock.
	maxPause = 100 * time.Microsecond
)

// clock gives processors the millisecond. It is read in three ways, the cheapest first:
//
//   - The processor's counter decides only whether the millisecond may stay, see [batch.stays].
//     Its rate is not known and does not matter.
//   - The monotonic clock moves the millisecond on, see [clock.follow].
//   - The wall clock sets it, see [clock.read].
type clock struct {
	now     func() time.Time
	elapsed func() time.Duration // of the monotonic clock, since some moment; nil: it has none
	gate    uint32               // how many ticks a millisecond may stay; 0 without a counter
}

func systemClock() clock {
	born := time.Now()
	return clock{time.Now, func() time.Duration { return time.Since(born) }, systemGate()}
}

// stays reports whether the millisecond may stay: the counter is working, and has counted less than
// gate ticks since a clock was read. A counter that jumps, or is another processor's, causes a
// reading of the monotonic clock.
func (b *batch) stays(count uint64, gate uint32) bool {
	moves := count != b.last
	b.last = count
	return moves && count-b.since < uint64(gate)
}

// follow moves b to the monotonic clock's time. count was read before. It reports false if the wall
// clock must be read.
func (k *clock) follow(b *batch, count uint64) bool {
	if k.elapsed == nil {
		return false
	}
	now := k.elapsed()
	// Readings of two clocks, if one is a synctest bubble's, may differ by any amount.
	if uint64(now-b.read) >= uint64(trusted) {
		return false
	}
	passed := (now - b.begins).Truncate(time.Millisecond)
	b.begins += passed
	b.since = count
	b.set(b.ms + passed.Milliseconds())
	return true
}

// read sets b to the wall clock's time.
func (k *clock) read(b *batch) {
	if k.elapsed == nil {
		b.set(k.now().UnixMilli())
		return
	}
	count, before := readCounter(), k.elapsed()
	now := k.now()
	after := k.elapsed()
	b.since = count
	b.begins, b.read = after-time.Duration(now.Nanosecond())%time.Millisecond, after
	if after-before > maxPause {
		b.read = after - trusted
	}
	b.set(now.UnixMilli())
}
