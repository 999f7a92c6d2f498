package idgen

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Each ID has the present millisecond, on either of two processors, and the clock is read once in
// 16 milliseconds.
func TestTimeByTheCounter(t *testing.T) {
	for _, rate := range []float64{0.6, 1, 2.5, 9.9} {
		c := newClock(noon)
		c.rate = rate
		g := c.counted()
		other := onOne(t, g)
		c.learn(t, g)
		r := rand.New(rand.NewPCG(1, 1))
		c.reads = 0
		began := c.mono
		seen := map[uint64]bool{}
		for i := range 200_000 {
			c.pass(time.Duration(r.IntN(20_000)) * time.Nanosecond)
			if i%1000 == 0 {
				other()
			}
			id, _ := g.NewIDs(t.Context())
			if late := c.time().Sub(traceid.Time(id)); late < -time.Millisecond/8 || late > time.Millisecond*9/8 {
				t.Fatalf("rate %v, ID %d: late by %v", rate, i, late)
			}
			if seen[half(id)] {
				t.Fatalf("rate %v, ID %d: the clear half of %s is a duplicate", rate, i, id)
			}
			seen[half(id)] = true
		}
		if most := 2 * int((c.mono-began)/(15*time.Millisecond)); c.reads > most {
			t.Errorf("rate %v: the clock was read %d times in %v, want at most %d", rate, c.reads, c.mono-began, most)
		}
		if g.clock.wrong.Load() {
			t.Errorf("rate %v: the counter is no longer used", rate)
		}
	}
}

// Ready IDs end with their second by the counter, without the timer and without the clock.
func TestSecondEndsByTheCounter(t *testing.T) {
	c := newClock(noon)
	s := &tagged{clock: unread{c}}
	g := c.counted(WithSource(s))
	onOne(t, g)
	c.learn(t, g)
	c.pass(time.Second - c.time().Sub(c.time().Truncate(time.Second)) - 3*time.Millisecond)
	c.late(t, g)
	for i, fills := range []int64{0, 1} {
		before, reads := s.fills.Load(), c.reads
		c.pass(2 * time.Millisecond)
		if c.late(t, g); s.fills.Load()-before != fills || c.reads != reads {
			t.Errorf("step %d: %d fills, %d readings; want %d, 0", i, s.fills.Load()-before, c.reads-reads, fills)
		}
	}
}

// A step of the clock in either direction is noticed within 16 ms on every processor.
func TestStepsOfTheClock(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 5 * time.Second, time.Hour, -3 * time.Second, -time.Hour} {
		c := newClock(noon)
		g := c.counted()
		other := onOne(t, g)
		c.learn(t, g)
		other()
		c.learn(t, g)
		// This processor reads the clock, and the other one does so 10 ms later. So the other one
		// still trusts its counter when this one notices the step.
		c.pass(20 * time.Millisecond)
		c.late(t, g)
		other()
		c.pass(10 * time.Millisecond)
		c.late(t, g)
		c.add(step)
		c.pass(7 * time.Millisecond)
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
		c.pass(17 * time.Millisecond)
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

// A wrong counter is never used again, and does little harm until it is noticed.
func TestWrongCounters(t *testing.T) {
	for name, harm := range map[string]func(c *fakeClock){
		"jumps forward":            func(c *fakeClock) { c.ticks += 1e12 },
		"jumps forward a little":   func(c *fakeClock) { c.ticks += 2.5e6 * 4 },
		"jumps back":               func(c *fakeClock) { c.ticks -= 1e12 },
		"jumps back a little":      func(c *fakeClock) { c.ticks -= 2.5e6 * 4 },
		"jumps to zero":            func(c *fakeClock) { c.ticks = 0 },
		"stops":                    func(c *fakeClock) { c.rate = 0 },
		"runs backwards":           func(c *fakeClock) { c.rate = -2.5 },
		"is slower on another CPU": func(c *fakeClock) { c.rate = 2 },
		"is faster on another CPU": func(c *fakeClock) { c.rate = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock(noon)
			g := c.counted()
			other := onOne(t, g)
			c.learn(t, g)
			other()
			c.learn(t, g)
			harm(c)
			for i := range 2000 {
				c.pass(777 * time.Microsecond)
				if i%7 == 0 {
					other()
				}
				if i == 1200 { // a second has ended: simulate the timer, which runs in real time
					g.valid.end()
				}
				// An order that is ahead of the clock by less than the hold stays ahead: it never
				// goes back. Only a counter that stands still is wrong for longer than it is
				// trusted.
				late := c.late(t, g)
				if most := time.Duration(i+1) * 777 * time.Microsecond; late < -17*time.Millisecond ||
					late > 17*time.Millisecond && late > most || i > 1300 && late != 0 {
					t.Fatalf("call %d: late by %v", i, late)
				}
			}
			if !g.clock.wrong.Load() {
				t.Error("the counter is still used")
			}
		})
	}
}

// The rate is measured over at least 16 ms, and may be the slowest or the fastest plausible one.
// A counter may then differ from the clock by half a millisecond and a 64th.
func TestLimitsOfTheCounter(t *testing.T) {
	for _, tt := range []struct {
		rate    uint64 // ticks a millisecond while it is measured
		counted uint64 // in the 32 ms after it
		right   bool
	}{
		{1e6 - 1, 32 * (1e6 - 1), false}, {1e6, 32e6, true}, {2e6, 64e6, true}, {2e6 + 1, 32 * (2e6 + 1), false},
		{1e6, 33e6, true}, {1e6, 33e6 + 1, false}, {1e6, 31e6, true}, {1e6, 31e6 - 1, false},
	} {
		count := uint64(1e15)
		c := newClock(noon.Add(-16 * time.Millisecond).Add(750 * time.Microsecond))
		var k clock
		k.start(randflake.SystemClock, counter{read: func() uint64 { return count }, slowest: 1e6, fastest: 2e6})
		k.Clock = c
		var r reading
		pass := func(d time.Duration, ticks uint64) bool {
			c.pass(d)
			count += ticks
			return k.read(&r, count)
		}
		if !pass(0, 0) || !pass(trusted*time.Millisecond-1, trusted*tt.rate) || r.advance(count) {
			t.Fatalf("%+v: a rate was measured in less than 16 ms", tt)
		}
		right := pass(1, 0)
		if right {
			if begins := count - tt.rate*3/4; r.advance(begins-1) || !r.advance(begins) || r.ms != noon.UnixMilli() ||
				!r.advance(begins+trusted*tt.rate-1) || r.ms != noon.UnixMilli()+trusted-1 || r.advance(begins+trusted*tt.rate) {
				t.Errorf("%+v: %+v does not follow the clock for 16 ms", tt, r)
			}
			right = pass(2*trusted*time.Millisecond, tt.counted)
		}
		if right != tt.right || k.wrong.Load() == tt.right {
			t.Errorf("%+v: right %v, wrong %v", tt, right, k.wrong.Load())
		}
	}
}

// A goroutine that is stopped between reading the counter and the clock draws no conclusion: the
// counter is not wrong, and the next ID reads the clock. Nor are short interruptions blamed on it.
func TestStoppedWhileReading(t *testing.T) {
	c := newClock(noon)
	g := c.counted()
	onOne(t, g)
	c.learn(t, g)
	c.pass(20 * time.Millisecond)
	c.hook = func() { // the clock's reading is old when it returns
		c.hook = nil
		c.pass(5 * time.Second)
	}
	reads := c.reads
	if c.late(t, g); c.reads == reads {
		t.Error("the clock was not read: the test is meaningless")
	}
	if late := c.late(t, g); late != 0 || g.clock.wrong.Load() {
		t.Errorf("late by %v, wrong: %v", late, g.clock.wrong.Load())
	}
	for seed := range uint64(50) {
		c := newClock(noon)
		g := c.counted()
		onOne(t, g)
		r := rand.New(rand.NewPCG(seed, 1))
		g.clock.counter.read = func() uint64 {
			c.pass(time.Duration(r.IntN(20)) * time.Microsecond)
			return c.count()
		}
		for range 1000 {
			c.pass(time.Duration(r.IntN(3000)) * time.Microsecond)
			if late := c.late(t, g); late.Abs() > time.Millisecond {
				t.Fatalf("seed %d: late by %v", seed, late)
			}
		}
		if g.clock.rate.Load() == 0 || g.clock.wrong.Load() {
			t.Fatalf("seed %d: the counter is not used", seed)
		}
	}
}

// The counter is used with the system clock only.
func TestCounterIsForTheSystemClock(t *testing.T) {
	ticks := counter{read: func() uint64 { return 7 }, slowest: 0.5e6, fastest: 10e6}
	for name, tt := range map[string]struct {
		clock   randflake.Clock
		counter counter
		used    bool
	}{
		"both":              {randflake.SystemClock, ticks, true},
		"a test's clock":    {newClock(noon), ticks, false},
		"a clock function":  {randflake.ClockFunc(time.Now), ticks, false},
		"no counter":        {randflake.SystemClock, counter{}, false},
		"neither, as in Go": {randflake.ClockFunc(time.Now), counter{}, false},
	} {
		var k clock
		k.start(tt.clock, tt.counter)
		if used := k.counter.read() == 7; used != tt.used || k.wrong.Load() == tt.used {
			t.Errorf("%s: used %v, wrong %v", name, used, k.wrong.Load())
		}
	}
}

// outside returns an error if an ID's millisecond is outside of what the clock showed before and
// after the ID was made.
func outside(g *Generator, early, lateBy time.Duration) error {
	before := time.Now()
	id, _ := g.NewIDs(nil) //nolint:staticcheck // the context is not used
	after := time.Now()
	if at := traceid.Time(id); at.Before(before.Add(-lateBy-time.Millisecond)) || at.After(after.Add(early)) {
		return fmt.Errorf("an ID made between %[2]v and %[3]v has the time %[1]v", at, before, after)
	}
	return nil
}

// Millions of IDs are within a millisecond of the clock while all processors are overloaded.
func TestTimeUnderLoad(t *testing.T) {
	n, workers := 5_000_000, 4*runtime.GOMAXPROCS(0)
	if RaceEnabled || runtime.GOARCH != "amd64" { // under an emulator, most likely
		n /= 10
	}
	g := New()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range n / workers {
				if err := outside(g, time.Millisecond, time.Millisecond); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// While the clock is out of range and the source works, each call counts as a refusal, the change
// is reported once, and so is the return, whatever other calls succeed in between.
func TestClockOutOfRangeWithAWorkingSource(t *testing.T) {
	for _, year := range []int{2019, 2090} {
		errs := collectErrors(t)
		c := newClock(noon)
		g := c.counted(WithSource(&tagged{clock: randflake.ClockFunc(func() time.Time { return noon })}))
		c.set(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC))
		const calls = 500
		for range calls {
			c.pass(200 * time.Microsecond)
			g.NewIDs(t.Context())
			g.NewSpanID(t.Context(), trace.TraceID{})
		}
		if n := g.Fallbacks(); n != calls || len(errs.all()) != 1 {
			t.Errorf("%d: %d fallbacks in %d calls, %v", year, n, calls, errs.all())
		}
		c.set(noon)
		c.pass(20 * time.Millisecond)
		g.NewIDs(t.Context())
		if got := errs.all(); len(got) != 2 || !errors.Is(got[0], errClock) || errors.Is(got[1], errClock) {
			t.Errorf("%d: %d reports, want 2: %v", year, len(got), got)
		}
	}
}
