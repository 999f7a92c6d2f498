package idgen

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// trust is for how many milliseconds a processor goes on by its counter
	// after it has read the clock. So neither drift nor a step of the clock is
	// unknown for longer.
	trust = 16
	// agreement is the share by which the counter may differ from the clock.
	agreement = 1. / 64
)

// counter counts at a constant rate while the machine runs, and reading it is
// much cheaper than reading the clock. The zero counter is none.
type counter struct {
	read             func() uint64
	slowest, fastest float64 // ticks a millisecond; another rate is no counter's
}

// clock tells milliseconds to stocks. It reads the clock together with the
// counter, and the counter's rate follows from two such readings: nothing is
// measured in advance. A counter that once disagrees with the clock is never
// used again.
type clock struct {
	randflake.Clock
	counter counter

	rate  atomic.Uint64 // ticks a millisecond, or 0: not known
	wrong atomic.Bool   // the counter is

	// epoch changes when every stock must look at the clock, its source and
	// the machine again. The timer changes it at the end of a second in which
	// IDs are made, so that those which are ready do not outlive it.
	epoch   atomic.Uint64
	armed   atomic.Bool
	untimed atomic.Bool // no timer: the clock is read for each ID
	timer   *time.Timer
}

func newClock(c randflake.Clock, n counter) *clock {
	k := &clock{Clock: c, counter: n}
	moved := c != randflake.SystemClock // by a test
	k.untimed.Store(moved)
	if moved || n.read == nil {
		k.counter.read = func() uint64 { return 0 }
		k.wrong.Store(true)
	}
	k.epoch.Store(1)
	k.timer = time.AfterFunc(time.Hour, func() {
		k.armed.Store(false) // first: who sees the new epoch arms it again
		k.epoch.Add(1)
	})
	k.timer.Stop()
	return k
}

// arm lets the timer run to the end of ms's second. It reports false when
// nobody will change the epoch then.
func (k *clock) arm(ms int64) bool {
	if k.untimed.Load() {
		return false
	}
	if !k.armed.Load() && k.armed.CompareAndSwap(false, true) {
		k.timer.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
		if k.untimed.Load() { // closed meanwhile
			k.timer.Stop()
		}
	}
	return true
}

func (k *clock) close() {
	k.untimed.Store(true)
	k.timer.Stop()
	k.epoch.Add(1)
}

// reading is what one processor knows of the time: in Unix milliseconds, it is
// ms while the counter is in [since, since+ticks).
type reading struct {
	ms           int64
	since, ticks uint64

	at     time.Time // of the last reading that the counter was held against
	count  uint64    // the counter then
	origin uint64    // the counter when the millisecond of the last reading began
	first  int64     // that millisecond
}

// read reads the clock, and the counter, which was at before a moment ago: a
// goroutine that was stopped since then learns nothing about the counter.
func (k *clock) read(r *reading, before uint64) {
	now := k.Now()
	r.ms, r.ticks = now.UnixMilli(), 0
	if k.wrong.Load() {
		return
	}
	after := k.counter.read()
	if float64(after-before) > k.counter.slowest/8 {
		return
	}
	rate, right := k.rate.Load(), true
	passed := float64(now.Sub(r.at)) / 1e6
	counted := float64(int64(after - r.count)) // negative if it jumped back
	switch {
	case r.at.IsZero():
	case rate != 0:
		right = math.Abs(counted/float64(rate)-passed) <= passed*agreement+0.5
	case passed < trust: // too short to measure
		return
	default:
		rate = uint64(max(counted/passed, 0))
		right = float64(rate) >= k.counter.slowest && float64(rate) <= k.counter.fastest
		k.rate.Store(rate)
	}
	if !right {
		k.wrong.Store(true)
		k.epoch.Add(1)
		return
	}
	r.at, r.count = now, after
	if rate != 0 {
		r.first, r.ticks = r.ms, rate
		r.origin = after - uint64(now.Nanosecond()%1e6)*rate/1e6
		r.since = r.origin
	}
}
