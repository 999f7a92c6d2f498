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

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Each ID has the current millisecond, on either of two processors, and each reads the wall clock
// once in 250 ms.
func TestTimeByTheMonotonicClock(t *testing.T) {
	c := newClock(noon)
	g, other := c.both(t)
	r := rand.New(rand.NewPCG(1, 1))
	c.reads = 0
	began := c.elapsed()
	seen := map[uint64]bool{}
	for i := range 50_000 {
		c.pass(time.Duration(r.IntN(20_000)) * time.Nanosecond)
		if i%1000 == 0 {
			other()
			c.pass(time.Duration(r.IntN(int(trusted)))) // the process is stopped
		}
		id, _ := g.NewIDs(t.Context())
		if at, now := traceid.Time(id), c.time(); !at.Equal(now.Truncate(time.Millisecond)) {
			t.Fatalf("ID %d: its time is %v, the clock shows %v", i, at, now)
		}
		if seen[half(id)] {
			t.Fatalf("ID %d: the clear half of %s is a duplicate", i, id)
		}
		seen[half(id)] = true
	}
	if most := 2 * (int((c.elapsed()-began)/trusted) + 2); c.reads > most && !raceEnabled {
		t.Errorf("the clock was read %d times in %v, want at most %d", c.reads, c.elapsed()-began,
			most)
	}
}

// Ready IDs end with their second by the monotonic clock, without the timer.
func TestSecondEndsByTheMonotonicClock(t *testing.T) {
	c := newClock(noon.Truncate(time.Second))
	s := &tagged{clock: c.time}
	noTimer := func(cfg *config) { cfg.after = func(time.Duration, func()) {} }
	g, _ := c.both(t, WithSource(s), noTimer)
	c.pass(time.Second - 3*time.Millisecond)
	for i, want := range []int64{0, 0, 1, 0} {
		before := s.fills.Load()
		if late := c.late(t, g); late != 0 || s.fills.Load()-before != want {
			t.Errorf("ID %d: late by %v, %d fills, want %d", i, late, s.fills.Load()-before, want)
		}
		c.pass(2 * time.Millisecond)
	}
}

// A step of the wall clock in either direction, or a suspend of the machine, is noticed within 250
// ms on every processor.
func TestStepsOfTheClock(t *testing.T) {
	for _, step := range []time.Duration{
		time.Millisecond, time.Second, 5 * time.Second, time.Hour, -3 * time.Second, -time.Hour,
	} {
		c := newClock(noon.Truncate(time.Second)) // no second ends before the IDs are generated
		g, other := c.both(t)
		// This processor reads the clock, and the other one does so 10 ms later. So the other one
		// still follows its monotonic clock when this one notices the step.
		c.pass(trusted)
		c.late(t, g)
		other()
		c.pass(10 * time.Millisecond)
		c.late(t, g)
		c.add(step)
		if late := c.late(t, g); late != step.Truncate(time.Millisecond) {
			t.Errorf("step %v: late by %v at once: the test is meaningless", step, late)
		}
		c.pass(trusted - 10*time.Millisecond)
		other()
		if late := c.late(t, g); late != 0 {
			t.Errorf("step %v: late by %v", step, late)
		}
		steps := g.steps.Load()
		if (steps == 1) != (step < 0) || steps > 1 {
			t.Errorf("step %v: %d steps are counted", step, steps)
		}
		other()
		if late := c.late(t, g); step < 0 && late != 0 {
			t.Errorf("step %v: late by %v on the other processor", step, late)
		}
		c.pass(trusted)
		for range 3 {
			other()
			if late := c.late(t, g); late != 0 {
				t.Errorf("step %v: late by %v in the end", step, late)
			}
		}
		if g.steps.Load() != steps {
			t.Errorf("step %v: %d steps are counted in the end", step, g.steps.Load())
		}
	}
}

// The clock steps back by more than the source accepts, and the lease continues with another
// block's nodes: both halves of the next IDs have the new time at once.
func TestStepBackToAnotherLease(t *testing.T) {
	reportstest.Collect(t)
	c, codec := newClock(noon), newCodec(t, fleetSecret)
	one := newSource(t, c.time)
	two, err := randflake.NewGenerator(codec,
		randflake.Lease{Node: 72, Nodes: 8, Start: noon.Add(-time.Hour), End: noon.Add(time.Hour)},
		randflake.WithClock(c.time))
	if err != nil {
		t.Fatal(err)
	}
	g, _ := c.both(t, WithSource(sourceFunc(func(dst []randflake.ID) (int, time.Time, error) {
		n, second, err := one.Fill(dst)
		if n == 0 {
			return two.Fill(dst)
		}
		return n, second, err
	})))
	c.pass(time.Millisecond)
	g.NewIDs(t.Context())
	c.add(-time.Minute)
	v := traceid.NewVerifier(randflake.NewKeyring(codec),
		traceid.WithClock(c.time), traceid.WithSkew(2*time.Minute))
	for range 3000 {
		if id, _ := g.NewIDs(t.Context()); !v.Verify(id) {
			t.Fatalf("the halves of %s disagree", id)
		}
	}
}

// While the wall clock is slewed against the monotonic clock, an ID's time is wrong by no more than
// the slew of 250 ms, which is 0.13 ms at NTP's 500 ppm, and a millisecond.
func TestSlews(t *testing.T) {
	for _, slew := range []float64{500e-6, -500e-6, 0.0175, -0.0175, 0.083, -0.083} {
		c := newClock(noon)
		g, other := c.both(t)
		most := time.Duration(math.Abs(slew)*float64(trusted)) + time.Millisecond
		for i := range 20_000 {
			c.pass(777 * time.Microsecond)
			c.add(time.Duration(slew * float64(777*time.Microsecond)))
			if i%7 == 0 {
				other()
			}
			if late := c.late(t, g); late.Abs() > most {
				t.Fatalf("slew %v, ID %d: late by %v, want at most %v", slew, i, late, most)
			}
		}
		if g.steps.Load() != 0 {
			t.Errorf("slew %v: %d steps are counted", slew, g.steps.Load())
		}
	}
}

// A goroutine that is stopped while it reads the clocks may return an ID of the time before, but
// the next ID has the present time.
func TestStoppedWhileReading(t *testing.T) {
	for _, nth := range []int{1, 2, 3, 4} { // reading of a clock
		c := newClock(noon)
		g, _ := c.both(t)
		c.pass(trusted)
		n := 0
		c.hook = func() {
			if n++; n == nth {
				c.hook = nil
				c.pass(200 * time.Millisecond) // no second ends
			}
		}
		c.late(t, g)
		if c.hook != nil {
			t.Errorf("reading %d: there was none: the test is meaningless", nth)
		}
		if late := c.late(t, g); late != 0 {
			t.Errorf("reading %d: late by %v", nth, late)
		}
	}
	for seed := range uint64(50) { // short interruptions of every reading
		c := newClock(noon)
		r := rand.New(rand.NewPCG(seed, 1))
		g := c.generator()
		onOne(t, g)
		c.hook = func() { c.pass(time.Duration(r.IntN(200)) * time.Microsecond) }
		for range 1000 {
			c.pass(time.Duration(r.IntN(3000)) * time.Microsecond)
			if late := c.late(t, g); late < 0 || late > time.Millisecond {
				t.Fatalf("seed %d: late by %v", seed, late)
			}
		}
	}
}

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
		"steady":                 {func(n uint64) uint64 { return n }, ticks, true},
		"two thirds of the rate": {func(n uint64) uint64 { return n / 3 * 2 }, ticks * 3 / 2, true},
		"ten times the rate":     {func(n uint64) uint64 { return 10 * n }, ticks / 10, true},
		"stopped":                {func(uint64) uint64 { return 1e15 }, 0, false},
		"backwards":              {func(n uint64) uint64 { return -n }, 0, false},
		"stops for 100 µs in 300": {func(n uint64) uint64 {
			return n - n%750_000 + min(n%750_000, 500_000)
		}, ticks, true},
		"jumps forward each 10 µs": {func(n uint64) uint64 { return n + n/25_000*1e9 }, ticks,
			true},
		"jumps back each 10 µs": {func(n uint64) uint64 { return n - n/25_000*1e9 }, ticks,
			true},
		"two processors apart": {func(n uint64) uint64 { return n + n/25_000%2*1e12 },
			ticks, true},
		"two processors, a bit apart": {func(n uint64) uint64 { return n + n/25_000%2*1e5 }, ticks,
			true},
		"it passes the end of 64 bits": {func(n uint64) uint64 {
			return n - 1e15 - 2.5e8
		}, ticks, true},
		"it moves once a millisecond": {func(n uint64) uint64 { return n - n%2_500_000 }, 0, false},
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
	for _, jump := range []time.Duration{-time.Nanosecond, -time.Hour, trusted, time.Hour} {
		k.read(&here)
		c.mono += jump
		if k.follow(&here, 0) {
			t.Errorf("a clock that jumped by %v is followed", jump)
		}
	}
	k.read(&here)
	if !k.follow(&here, 0) {
		t.Error("the clock is not followed at all")
	}
}

// The counter is read before the clock, and only with the machine's clock. Nil options change
// nothing.
func TestCounterIsForTheSystemClock(t *testing.T) {
	c := newClock(noon)
	fake := WithClock(c.Now)
	for name, tt := range map[string]struct {
		opts []Option
		used bool
	}{
		"default": {nil, true},
		"all nil": {[]Option{nil, WithSource(nil), WithClock(nil),
			WithMeterProvider(nil)}, true},
		"set again":        {[]Option{fake, WithClock(nil)}, true},
		"a test's clock":   {[]Option{fake}, false},
		"a clock function": {[]Option{WithClock(time.Now)}, false},
	} {
		want := uint32(0)
		if tt.used {
			want = systemGate()
		}
		if g := New(tt.opts...); g.clock.gate != want || (g.slots != nil) != tt.used {
			t.Errorf("%s: gate %d, want %d", name, g.clock.gate, want)
		}
	}
	if systemGate() == 0 {
		t.Skip("no counter here")
	}
	g, _ := c.both(t, func(cfg *config) { cfg.gate = math.MaxUint32 }) // some seconds
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
	if used := g.sequence.next.Load() - floorOf(layout.EpochMillis); used == 0 {
		t.Error("no ID was generated")
	}
}
