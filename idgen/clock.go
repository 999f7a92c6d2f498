package idgen

import (
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	tick = time.Millisecond
	// busy readings within a millisecond start the ticks: an ID now and then is
	// cheaper by reading the clock than by waking the process each millisecond.
	busy = 64
	// ticks is for how many the timer runs once it is started. Then it stops,
	// and the next busy millisecond starts it again: so a generator that nobody
	// uses costs nothing.
	ticks = 64
)

// coarse tells the time, while many ask, without reading the clock: a timer
// writes it down. Typically that is at most a tick late, and as late as the
// scheduler lets the timer be. Nothing but the time written into IDs depends on it.
type coarse struct {
	clock randflake.Clock
	exact bool   // always read the clock; for clocks that tests move
	each  func() // called with each reading, if not nil; set before the first

	_      [64]byte
	millis atomic.Int64 // Unix milliseconds, or 0: the ticks do not run
	rough  atomic.Int64 // some millisecond of this second, or 0: not known
	_      [48]byte

	running atomic.Bool // the ticks
	left    int         // ticks, the timer's alone
	timer   *time.Timer
	reads   atomic.Int64 // the millisecond of the last reading for now << 8 | about how many

	waiting atomic.Bool // for the second's end
	end     *time.Timer
}

func newCoarse(c randflake.Clock) *coarse {
	k := &coarse{clock: c, exact: c != randflake.SystemClock}
	k.timer, k.end = stopped(k.tick), stopped(k.forget)
	return k
}

// stopped returns a timer that calls f once it is reset.
func stopped(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// now returns Unix milliseconds.
func (k *coarse) now() int64 {
	if ms := k.millis.Load(); ms != 0 {
		return ms
	}
	return k.start()
}

// second returns some Unix millisecond of the present second, for who needs no
// more: the clock is read and a timer set once a second at most.
func (k *coarse) second() int64 {
	if ms := k.rough.Load(); ms != 0 {
		return ms
	}
	return k.startSecond()
}

// read reads the clock, for who has reason to doubt what a timer wrote.
func (k *coarse) read() int64 {
	millis, rough := k.millis.Load(), k.rough.Load()
	ms := k.clock.Now().UnixMilli()
	if millis != 0 { // and not if the timer has stopped or gone on since
		k.millis.CompareAndSwap(millis, ms)
	}
	if rough != 0 && rough/1000 != ms/1000 { // until its timer is due, the clock is read
		k.rough.CompareAndSwap(rough, 0)
	}
	return ms
}

func (k *coarse) start() int64 {
	ms := k.look()
	if k.exact {
		return ms
	}
	switch reads := k.reads.Load(); {
	case reads>>8 != ms:
		k.reads.Store(ms << 8)
	case reads&0xff < busy-1:
		k.reads.Store(reads + 1)
	case k.running.CompareAndSwap(false, true):
		k.left = ticks
		k.millis.Store(k.look()) // anew: it may have taken long to get here
		k.timer.Reset(tick)
	}
	return ms
}

func (k *coarse) tick() {
	if k.left--; k.left <= 0 {
		k.millis.Store(0)
		k.running.Store(false)
		return
	}
	k.millis.Store(k.look())
	k.timer.Reset(tick)
}

func (k *coarse) startSecond() int64 {
	if k.exact || !k.waiting.CompareAndSwap(false, true) {
		return k.look()
	}
	ms := k.look()
	k.rough.Store(ms)
	k.end.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
	return ms
}

func (k *coarse) forget() {
	k.rough.Store(0)
	k.waiting.Store(false)
}

func (k *coarse) look() int64 {
	if k.each != nil {
		k.each()
	}
	return k.clock.Now().UnixMilli()
}
