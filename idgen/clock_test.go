package idgen

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

// The counter decides only whether the millisecond stays, whatever it does: IDs are late by no more
// than gate ticks at its rate. If it stops or runs backwards, a clock is read for each ID.
func TestCounters(t *testing.T) {
	const gate, rate = 1 << 17, 2.5 // in ticks a nanosecond
	const ticks = gate * 2 / 5 * time.Nanosecond
	for name, tt := range map[string]struct {
		harm  func(count uint64) uint64
		late  time.Duration // at most
		stays bool          // usually
	}{
		"steady":             {func(n uint64) uint64 { return n }, ticks, true},
		"two thirds as fast": {func(n uint64) uint64 { return n / 3 * 2 }, ticks * 3 / 2, true},
		"stopped":            {func(uint64) uint64 { return 1e15 }, 0, false},
		"backwards":          {func(n uint64) uint64 { return -n }, 0, false},
		"once a millisecond": {func(n uint64) uint64 { return n - n%2_500_000 }, 0, false},
		"stops at times": {func(n uint64) uint64 {
			return n - n%750_000 + min(n%750_000, 500_000)
		}, ticks, true},
		"two apart":    {func(n uint64) uint64 { return n + n/25_000%2*1e12 }, ticks, true},
		"past 64 bits": {func(n uint64) uint64 { return n - 1e15 - 2.5e8 }, ticks, true},
	} {
		c := newClock(noon)
		k := clock{now: c.Now, elapsed: c.elapsed, gate: gate}
		count := func() uint64 { return tt.harm(1e15 + uint64(rate*float64(c.elapsed()))) }
		r := rand.New(rand.NewPCG(1, 2))
		var here batch
		k.read(&here)
		const calls, step = 200_000, 2 * time.Microsecond
		stayed, worst := 0, time.Duration(0)
		for range calls {
			c.pass(time.Duration(r.Int64N(int64(step))))
			n := count()
			if here.stays(n, gate) {
				stayed++
			} else if !k.follow(&here, n) {
				k.read(&here)
			}
			if c.time().Before(time.UnixMilli(here.ms)) {
				t.Fatalf("%s: the millisecond is ahead of the clock", name)
			}
			worst = max(worst, c.time().Sub(time.UnixMilli(here.ms+1))) // since it ended
		}
		if worst > tt.late || (stayed > calls/2) != tt.stays {
			t.Errorf("%s: late by %v, want at most %v; the millisecond stayed %d times",
				name, worst, tt.late, stayed)
		}
	}
}

// A monotonic clock that goes back is another clock, that of a synctest bubble, and is not
// followed.
func TestAnotherMonotonicClock(t *testing.T) {
	c := newClock(noon)
	k := clock{now: c.Now, elapsed: c.elapsed}
	var here batch
	k.read(&here)
	if !k.follow(&here, 0) {
		t.Error("the clock is not followed")
	}
	if c.mono--; k.follow(&here, 0) {
		t.Error("a clock that has gone back is followed")
	}
}

// The counter is read before the clock, and only with the machine's clock. Nil options change
// nothing.
func TestCounterIsForTheSystemClock(t *testing.T) {
	c := newClock(noon)
	fake := WithClock(c.Now)
	g := New(nil, WithSource(nil), fake, WithClock(nil), WithMeterProvider(nil))
	if g.clock.gate != systemGate() || g.slots == nil || New(fake).clock.gate != 0 {
		t.Errorf("gate %d, want %d, and 0 with a test's clock", g.clock.gate, systemGate())
	}
	if systemGate() == 0 {
		t.Skip("no counter here")
	}
	g, _ = c.both(t, func(cfg *config) { cfg.clock.gate = math.MaxUint32 }) // some seconds
	c.late(t, g)
	c.pass(2 * time.Millisecond)
	if late := c.late(t, g); late != 2*time.Millisecond {
		t.Errorf("late by %v: a clock was read although the counter lets the millisecond stay",
			late)
	}
}

// Each ID is within a millisecond of the clock while all processors are overloaded. The system's
// counter is used, if there is one.
func TestTimeUnderLoad(t *testing.T) {
	n, workers := 500_000, 4*runtime.GOMAXPROCS(0)
	if testing.Short() {
		n /= 10
	} else if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" {
		n *= 20
	}
	g := New()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range n / workers {
				before := time.Now()
				id, _ := g.NewIDs(context.Background())
				after := time.Now()
				// A quarter of a millisecond is promised, in addition to the rounding.
				at := traceid.Time(id)
				if at.Before(before.Add(-5*time.Millisecond/4)) || at.After(after) {
					t.Errorf("an ID generated between %v and %v has the time %v", before, after, at)
					return
				}
			}
		})
	}
	wg.Wait()
}
