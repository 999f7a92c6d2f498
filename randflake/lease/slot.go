package lease

import (
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// maxClockGap is how far the wall clock and the monotonic clock may drift
// apart from one second to the next before it counts as a step, a suspension
// or a clone.
const maxClockGap = time.Second

// slot is one grant and the generator it feeds: one grant, one generator, once.
type slot struct {
	gen   *randflake.Generator
	clock randflake.Clock
	wall  func() time.Time    // its Now
	drop  func(*slot, reason) // what to do when the clock is not to be trusted

	second atomic.Int64 // the last second of the clock that was entered
	offset atomic.Int64 // wall clock minus monotonic clock at that moment, in ns
	busy   atomic.Int64 // the last second of the clock in which IDs were borrowed
	until  atomic.Int64 // the lease's end in Unix seconds
	gone   atomic.Bool  // sealed: dropped, or given back

	// The Keeper's goroutine alone touches what follows.
	grant    Grant
	lost     bool          // cannot be renewed any more
	renewAt  time.Duration // on the monotonic clock
	failures int           // renewals in a row
}

// newSlot starts the generator of a grant. before is a reading of the clocks
// from before the grant was asked for: what happened to the machine since
// then counts.
func newSlot(c *randflake.Codec, g Grant, clock randflake.Clock, before reading, drop func(*slot, reason)) (*slot, error) {
	s := &slot{clock: clock, wall: clock.Now, drop: drop, grant: g}
	if clock == randflake.SystemClock {
		s.wall = time.Now // without the way through two methods, for every ID
	}
	s.second.Store(before.wall.Unix())
	s.offset.Store(before.offset())
	s.until.Store(g.End.Unix())
	var err error
	s.gen, err = randflake.NewGenerator(c, g.Lease, randflake.WithClock(s.now))
	return s, err
}

// now is the generator's clock. Entering a new second it looks whether the two
// clocks still go together; when they do not, the generator is sealed before
// it sees the time, and makes no ID of it.
func (s *slot) now() time.Time {
	now := s.wall()
	if now.Unix() != s.second.Load() {
		s.enter(now.Unix())
	}
	return now
}

func (s *slot) enter(second int64) {
	if at, ok := s.look(); ok {
		s.offset.Store(at.offset()) // follows a clock that is slewed
		s.second.Store(second)
	}
}

// look reads the clocks, and drops the slot when they moved apart.
func (s *slot) look() (at reading, ok bool) {
	at = read(s.clock)
	gap := at.offset() - s.offset.Load()
	if gap > int64(maxClockGap) || gap < -int64(maxClockGap) {
		s.drop(s, clockGap)
		return at, false
	}
	return at, true
}

// end seals the generator and returns its first unused second.
func (s *slot) end() (unused time.Time) {
	s.gone.Store(true)
	return s.gen.Seal()
}

// reading is both clocks at one moment.
type reading struct {
	wall    time.Time
	elapsed time.Duration
}

// read reads both clocks. A pause between the two looks like a gap, so it
// tries again after one.
func read(c randflake.Clock) reading {
	for tries := 0; ; tries++ {
		before := c.Elapsed()
		wall := c.Now()
		if after := c.Elapsed(); after-before < maxClockGap/8 || tries == 3 {
			return reading{wall: wall, elapsed: after}
		}
	}
}

func (r reading) offset() int64 { return r.wall.UnixNano() - int64(r.elapsed) }
