package idgen

import (
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	tick = time.Millisecond
	// busy readings within a millisecond start the timer: an ID now and then is
	// cheaper by reading the clock than by waking the process each millisecond.
	busy = 64
	// ticks is for how long the timer runs once it is started. Then it stops,
	// and the next busy millisecond starts it again: so a generator that nobody
	// uses costs nothing.
	ticks = 64
)

// coarse tells the time, while many ask, without reading the clock: a timer
// writes it down each millisecond. Typically it is at most 2 ms late, and as late as the scheduler
// lets the timer be. Nothing but the time written into IDs depends on it.
type coarse struct {
	clock randflake.Clock
	exact bool   // always read the clock; for clocks that tests move
	each  func() // called with each reading, if not nil; set before the first

	_       [64]byte
	millis  atomic.Int64 // Unix milliseconds, or 0: the timer does not run
	_       [56]byte
	running atomic.Bool
	left    int          // ticks, the timer's alone
	last    atomic.Int64 // the millisecond of the last reading without the timer
	reads   atomic.Int32 // in that millisecond
	timer   *time.Timer
}

func newCoarse(c randflake.Clock) *coarse {
	k := &coarse{clock: c, exact: c != randflake.SystemClock}
	k.timer = time.AfterFunc(time.Hour, k.tick)
	k.timer.Stop()
	return k
}

// now returns Unix milliseconds.
func (k *coarse) now() int64 {
	if ms := k.millis.Load(); ms != 0 {
		return ms
	}
	return k.start()
}

// read reads the clock, for who has reason to doubt what the timer wrote.
func (k *coarse) read() int64 {
	was := k.millis.Load()
	ms := k.clock.Now().UnixMilli()
	if was != 0 { // and not if the timer has stopped or gone on since
		k.millis.CompareAndSwap(was, ms)
	}
	return ms
}

func (k *coarse) start() int64 {
	ms := k.look()
	switch {
	case k.exact:
		return ms
	case k.last.Swap(ms) != ms:
		k.reads.Store(0)
	case k.reads.Add(1) >= busy && k.running.CompareAndSwap(false, true):
		k.left = ticks
		k.millis.Store(ms)
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

func (k *coarse) look() int64 {
	if k.each != nil {
		k.each()
	}
	return k.clock.Now().UnixMilli()
}
