package idgen

import "time"

const (
	// trusted is how long the monotonic clock stands in for the wall clock: a step of the wall
	// clock is noticed after this time at the latest.
	trusted = 250 * time.Millisecond
	// maxPause is how long reading both clocks may take. If it took longer, the goroutine was
	// stopped between them, and the monotonic clock does not stand in for the wall clock.
	maxPause = 100 * time.Microsecond
)

// clock gives processors the millisecond. It is read in three ways, the cheapest first:
//
//   - The processor's counter decides only whether the millisecond may stay, see [ready.stays].
//     Its rate is not known and does not matter.
//   - The monotonic clock moves the millisecond on, see [clock.follow].
//   - The wall clock sets it, see [clock.read].
type clock struct {
	now     func() time.Time
	elapsed func() time.Duration // of the monotonic clock, since some moment
	gate    uint32               // how many ticks a millisecond may stay; 0 without a counter
}

// stays reports whether the millisecond may stay: the counter is working, and has counted less than
// gate ticks since a clock was read. A counter that jumps, or is another processor's, causes a
// reading of the monotonic clock.
func (r *ready) stays(count uint64) bool {
	moves := count != r.last
	r.last = count
	return moves && count-r.since < uint64(r.gate)
}

// follow moves r to the monotonic clock's time. count was read before. It reports false if the wall
// clock must be read.
func (k *clock) follow(r *ready, count uint64) bool {
	now := k.elapsed()
	// Readings of two clocks, if one is a synctest bubble's, may differ by any amount.
	if uint64(now-r.read) >= uint64(trusted) {
		return false
	}
	passed := (now - r.begins).Truncate(time.Millisecond)
	r.begins += passed
	r.since = count
	r.set(r.ms + passed.Milliseconds())
	return true
}

// read sets r to the wall clock's time.
func (k *clock) read(r *ready) {
	count, before := readCounter(), k.elapsed()
	now := k.now()
	after := k.elapsed()
	r.gate, r.since = k.gate, count
	r.begins, r.read = after-time.Duration(now.Nanosecond())%time.Millisecond, after
	if after-before > maxPause {
		r.read = after - trusted
	}
	r.set(now.UnixMilli())
}
