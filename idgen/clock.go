package idgen

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// trusted is for how many milliseconds a processor relies on its counter after it has read the
	// clock. Drift or a step of the clock is detected after that at the latest.
	trusted = 16
	// The counter may differ from the clock by maxDrift milliseconds in each, and by maxNoise
	// milliseconds in addition.
	maxDrift, maxNoise = 1. / 64, 1. / 2
	// maxPause is how many milliseconds may pass between reading the counter and the clock.
	maxPause = 1. / 32
)

// counter counts at a constant rate while the machine runs, and reading it is much cheaper than
// reading the clock. The zero value means that there is no counter.
type counter struct {
	read             func() uint64
	slowest, fastest float64 // ticks a millisecond; other rates are not plausible
}

// clock provides milliseconds to processors. It reads the system clock together with the counter,
// and derives the counter's rate from two such readings: nothing is measured in advance. A counter
// that has disagreed with the clock once is never used again.
type clock struct {
	counter counter
	randflake.Clock
	rate  atomic.Uint64 // ticks a millisecond; 0 if not known
	wrong atomic.Bool   // the counter disagreed with the clock, or there is none
}

func (k *clock) start(c randflake.Clock, n counter) {
	k.Clock, k.counter = c, n
	if n.read == nil {
		k.counter.read = func() uint64 { return 0 }
		k.wrong.Store(true)
	}
}

// reading is one processor's view of the time: it is ms, in Unix milliseconds, while the counter
// is in [since, since+ticks).
type reading struct {
	since, ticks uint64
	ms           int64
	trust        uint64 // the counter is trusted before this value
}

// moment is a reading of the clock and of the counter at the same time.
type moment struct {
	at    time.Time // zero: never
	count uint64
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

// read reads the clock. count is the counter's value a moment ago, and last when this processor
// last compared the two. It reports false if the counter has turned out to be wrong.
func (k *clock) read(r *reading, last *moment, count uint64) (right bool) {
	now := moment{k.Now(), count}
	r.ms, r.ticks = now.at.UnixMilli(), 0
	if k.wrong.Load() {
		return true
	}
	rate, found := k.judge(*last, now)
	switch found {
	case differs:
		k.wrong.Store(true)
	case agrees:
		*last, r.ticks = now, rate
		r.since = count - uint64(now.at.Nanosecond()%1e6)*rate/1e6
		r.trust = r.since + uint64(trusted)*rate
	}
	return found != differs
}

// verdict is what a comparison of the counter with the clock shows.
type verdict int

const (
	nothing verdict = iota
	agrees
	differs
)

// judge compares the counter with the clock between two moments, and returns the counter's rate,
// or 0 if it is not known yet.
func (k *clock) judge(before, now moment) (rate uint64, _ verdict) {
	rate = k.rate.Load()
	passed := float64(now.at.Sub(before.at)) / float64(time.Millisecond)
	ticks := float64(int64(now.count - before.count)) // negative if it jumped back
	drift := math.Abs(ticks/float64(rate) - passed)   // in milliseconds
	switch {
	case rate != 0 && drift <= maxPause:
		return rate, agrees
	case float64(k.counter.read()-now.count) > maxPause*k.counter.slowest:
		return 0, nothing // the goroutine was stopped between the readings of counter and clock
	case before.at.IsZero():
		return rate, agrees // this is the first reading
	case rate != 0 && drift <= maxNoise+passed*maxDrift:
		return rate, agrees
	case rate != 0:
		return 0, differs
	case passed < trusted:
		return 0, nothing // too short to measure the rate
	}
	rate = uint64(max(ticks/passed, 0))
	k.rate.Store(rate)
	if float64(rate) < k.counter.slowest || float64(rate) > k.counter.fastest {
		return 0, differs
	}
	return rate, agrees
}
