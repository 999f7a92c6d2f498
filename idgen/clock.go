package idgen

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	// A processor relies on its counter for up to trusted milliseconds after it has read the clock,
	// but for no longer than the counter's rate has been measured, which takes at least measured
	// milliseconds. A step of the clock is detected after that at the latest.
	trusted, measured = 250, 16
	// The counter may differ from the clock by maxDrift milliseconds in each, and by maxNoise
	// milliseconds in addition.
	maxDrift, maxNoise = 1. / 64, 1. / 2
	// maxPause is how many milliseconds may pass while the counter and the clock are read.
	maxPause = 1. / 32
)

// counter counts at a constant rate while the machine runs, and reading it is much cheaper than
// reading the clock. The zero value means that there is no counter.
type counter struct {
	read             func() uint64
	slowest, fastest float64 // ticks a millisecond; other rates are not plausible
}

// clock provides milliseconds to processors. It reads the system clock together with the counter,
// whose rate it measures from the generator's creation on. A counter that has disagreed with the
// clock once is never used again.
type clock struct {
	counter counter
	now     func() time.Time
	born    moment        // when the generator was created
	rate    atomic.Uint64 // ticks a millisecond; 0 until it was measured for as long as it is trusted
	wrong   atomic.Bool   // the counter disagreed with the clock, or there is none
}

func (k *clock) start(now func() time.Time, n counter) {
	k.now, k.counter = now, n
	if n.read == nil {
		k.counter.read = func() uint64 { return 0 }
	}
	for i := 0; n.read != nil && i < 100; i++ {
		var ok bool
		if k.born, ok = k.moment(); ok {
			return
		}
	}
	k.wrong.Store(true) // there is no counter, or reading it takes too long
}

// moment is a reading of the clock and of the counter at the same time.
type moment struct {
	at    time.Time // zero: never
	count uint64
}

// moment returns the present moment. It reports false if the goroutine was stopped between its two
// readings.
func (k *clock) moment() (now moment, ok bool) {
	now.count = k.counter.read()
	now.at = k.now()
	return now, float64(k.counter.read()-now.count) <= maxPause*k.counter.slowest
}

// since returns the milliseconds and the ticks since an earlier moment. The ticks are negative if
// the counter jumped back.
func (m moment) since(earlier moment) (passed, ticks float64) {
	passed = float64(m.at.Sub(earlier.at)) / float64(time.Millisecond)
	return passed, float64(int64(m.count - earlier.count))
}

// reading is one processor's view of the time: it is ms, in Unix milliseconds, while the counter
// is in [since, since+ticks).
type reading struct {
	since, ticks uint64
	ms           int64
	trust        uint64 // the counter is trusted before this value
}

// includes reports whether the counter is in r's millisecond.
func (r *reading) includes(count uint64) bool { return count-r.since < r.ticks }

// advance moves r to the millisecond of the counter. It reports false if the clock must be read.
func (r *reading) advance(count uint64) bool {
	if r.ticks == 0 || count-r.since >= r.trust-r.since {
		return false
	}
	n := (count - r.since) / r.ticks
	r.ms += int64(n)
	r.since += n * r.ticks
	return true
}

// read reads the clock. last is when this processor last compared it with the counter. It reports
// false if the counter has turned out to be wrong.
func (k *clock) read(r *reading, last *moment) (right bool) {
	now, ok := k.moment()
	r.ms, r.ticks = now.at.UnixMilli(), 0
	if !ok || k.wrong.Load() {
		return true
	}
	age, ticks := now.since(k.born)
	rate := k.rate.Load()
	if rate == 0 {
		if age < measured {
			return true
		}
		rate = uint64(max(ticks/age, 0))
		if age >= trusted {
			k.rate.Store(rate)
		}
	}
	passed, ticks := now.since(*last)
	drift := math.Abs(ticks/float64(rate) - passed)
	if float64(rate) < k.counter.slowest || float64(rate) > k.counter.fastest ||
		!last.at.IsZero() && drift > maxNoise+passed*maxDrift {
		k.wrong.Store(true)
		return false
	}
	*last, r.ticks = now, rate
	r.since = now.count - uint64(now.at.Nanosecond()%1e6)*rate/1e6
	r.trust = r.since + uint64(min(age, trusted)*float64(rate))
	return true
}
