package idgen

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// trust is for how many milliseconds a processor relies on its counter
	// after it has read the clock. Drift or a step of the clock is detected
	// after that at the latest.
	trust = 16
	// agreement is the fraction by which the counter may differ from the clock.
	agreement = 1. / 64
	// apart is how many milliseconds may pass between reading the counter and reading the clock.
	apart = 1. / 32
)

// counter counts at a constant rate while the machine runs, and reading it is
// much cheaper than reading the clock. The zero value means that there is no
// counter.
type counter struct {
	read             func() uint64
	slowest, fastest float64 // ticks a millisecond; other rates are not plausible
}

// clock provides milliseconds to stocks. It reads the system clock together
// with the counter, and derives the counter's rate from two such readings:
// nothing is measured in advance. A counter that has disagreed with the clock
// once is never used again.
type clock struct {
	randflake.Clock
	counter counter

	rate  atomic.Uint64 // ticks a millisecond; 0 if not known
	wrong atomic.Bool   // the counter disagreed with the clock

	// epoch changes when every stock must check the clock, its source and the
	// machine again. The timer changes it at the end of a second in which IDs
	// are made, so that ready IDs do not outlive it.
	epoch   atomic.Uint64
	armed   atomic.Bool
	untimed atomic.Bool // no timer: the clock is read for each ID
	timer   *time.Timer
}

func newClock(c randflake.Clock, n counter) *clock {
	k := &clock{Clock: c, counter: n}
	moved := c != randflake.SystemClock // a test's clock
	k.untimed.Store(moved)
	if moved || n.read == nil {
		k.counter.read = func() uint64 { return 0 }
		k.wrong.Store(true)
	}
	k.epoch.Store(1)
	k.timer = time.AfterFunc(time.Hour, func() {
		k.armed.Store(false) // first: a goroutine that sees the new epoch must arm it again
		k.epoch.Add(1)
	})
	k.timer.Stop()
	return k
}

// arm sets the timer to the end of ms's second. It reports false if the epoch
// will not change then.
func (k *clock) arm(ms int64) bool {
	if k.untimed.Load() {
		return false
	}
	if !k.armed.Load() && k.armed.CompareAndSwap(false, true) {
		k.timer.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
		if k.untimed.Load() { // closed in the meantime
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

// reading is one processor's view of the time: it is ms, in Unix milliseconds,
// while the counter is in [since, since+ticks).
type reading struct {
	ms           int64
	since, ticks uint64

	at     time.Time // of the last reading that the counter was compared with
	count  uint64    // the counter at that time
	origin uint64    // the counter when the millisecond of the last reading began
	first  int64     // that millisecond
}

// read reads the clock. count is the counter's value a moment ago.
func (k *clock) read(r *reading, count uint64) {
	now := k.Now()
	r.ms, r.ticks = now.UnixMilli(), 0
	if k.wrong.Load() {
		return
	}
	rate, right := k.rate.Load(), true
	passed := float64(now.Sub(r.at)) / 1e6
	counted := float64(int64(count - r.count)) // negative if it jumped back
	off := math.Abs(counted/float64(rate) - passed)
	if rate == 0 || off > apart { // otherwise they agree, and the counter need not be read again
		if float64(k.counter.read()-count) > apart*k.counter.slowest {
			return // the goroutine was stopped between the two readings: they tell nothing
		}
	}
	switch {
	case r.at.IsZero():
	case rate != 0:
		right = off <= passed*agreement+0.5
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
	r.at, r.count = now, count
	if rate != 0 {
		r.first, r.ticks = r.ms, rate
		r.origin = count - uint64(now.Nanosecond()%1e6)*rate/1e6
		r.since = r.origin
	}
}
