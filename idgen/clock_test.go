package idgen

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Each ID has the present millisecond, on either of two processors, and the clock is read once in
// 250 milliseconds.
func TestTimeByTheCounter(t *testing.T) {
	for _, rate := range []float64{0.6, 1, 2.5, 9.9} {
		c := newClock(noon)
		c.rate = rate
		g := c.counting()
		other := onOne(t, g)
		c.pass(trusted * time.Millisecond) // the rate is measured from New on
		r := rand.New(rand.NewPCG(1, 1))
		c.reads = 0
		began := c.mono
		seen := map[uint64]bool{}
		for i := range 50_000 {
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
		if most := 20; c.reads > most { // sync.Pool loses locals under the race detector
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
	s := &tagged{clock: c.time}
	g, _ := c.learned(t, WithSource(s))
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

// A step of the clock in either direction is noticed within 250 ms on every processor.
func TestStepsOfTheClock(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 5 * time.Second, time.Hour, -3 * time.Second, -time.Hour} {
		c := newClock(noon.Truncate(time.Second)) // no second ends before the IDs are made
		g, other := c.learned(t)
		// This processor reads the clock, and the other one does so 10 ms later. So the other one
		// still trusts its counter when this one notices the step.
		c.pass((trusted + 4) * time.Millisecond)
		c.late(t, g)
		other()
		c.pass(10 * time.Millisecond)
		c.late(t, g)
		c.add(step)
		c.pass((trusted - 9) * time.Millisecond)
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
		c.pass((trusted + 1) * time.Millisecond)
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

// The clock steps back by more than the source accepts, and the lease goes on with another block's nodes:
// both halves of the next IDs have the new time at once, although the counter is still trusted.
func TestStepBackToAnotherLease(t *testing.T) {
	collectErrors(t)
	c, codec := newClock(noon), newCodec(t, fleetSecret)
	one := newSource(t, c.time)
	two, err := randflake.NewGenerator(codec, randflake.Lease{Node: 72, Nodes: 8, Start: noon.Add(-time.Hour), End: noon.Add(time.Hour)},
		randflake.WithClock(c.time))
	if err != nil {
		t.Fatal(err)
	}
	g, _ := c.learned(t, WithSource(sourceFunc(func(dst []randflake.ID) (int, time.Time, error) {
		n, second, err := one.Fill(dst)
		if errors.Is(err, randflake.ErrClockBehind) {
			return two.Fill(dst)
		}
		return n, second, err
	})))
	c.pass(time.Millisecond)
	g.NewIDs(t.Context())
	c.add(-time.Minute)
	v := traceid.NewVerifier(randflake.NewKeyring(codec), traceid.WithClock(c.Now), traceid.WithSkew(2*time.Minute))
	for range 3000 {
		if id, _ := g.NewIDs(t.Context()); !v.Verify(id) {
			t.Fatalf("the halves of %s disagree", id)
		}
	}
}

// A wrong counter is never used again, and does little harm until it is noticed.
func TestWrongCounters(t *testing.T) {
	for name, harm := range map[string]func(c *fakeClock){
		"jumps forward":            func(c *fakeClock) { c.ticks += 1e12 },
		"jumps forward a little":   func(c *fakeClock) { c.ticks += 2.5e6 * 8 },
		"jumps back":               func(c *fakeClock) { c.ticks -= 1e12 },
		"jumps back a little":      func(c *fakeClock) { c.ticks -= 2.5e6 * 8 },
		"jumps to zero":            func(c *fakeClock) { c.ticks = 0 },
		"stops":                    func(c *fakeClock) { c.rate = 0 },
		"runs backwards":           func(c *fakeClock) { c.rate = -2.5 },
		"is slower on another CPU": func(c *fakeClock) { c.rate = 2 },
		"is faster on another CPU": func(c *fakeClock) { c.rate = 3 },
	} {
		c := newClock(noon)
		g, other := c.learned(t)
		harm(c)
		noticed := false
		for i := range 2000 {
			if g.clock.wrong.Load() && !noticed { // by one processor, so the other does not use it either
				noticed = true
				reads := c.reads
				other()
				if c.late(t, g); c.reads == reads {
					t.Errorf("%s: the other processor still uses the counter", name)
				}
			}
			c.pass(777 * time.Microsecond)
			if i%7 == 0 {
				other()
			}
			if i == 1200 { // a second has ended: simulate the timer, which runs in real time
				g.eras.end()
			}
			// An order that is ahead of the clock by less than the hold stays ahead: it never goes
			// back. Only a counter that stands still is wrong for longer than it is trusted.
			late := c.late(t, g)
			if most := time.Duration(i+1) * 777 * time.Microsecond; late < -(trusted+1)*time.Millisecond ||
				late > (trusted+1)*time.Millisecond && late > most || i > 1300 && late != 0 {
				t.Fatalf("%s, call %d: late by %v", name, i, late)
			}
		}
		if !g.clock.wrong.Load() {
			t.Errorf("%s: the counter is still used", name)
		}
	}
}

// A processor trusts the counter for as long as its rate has been measured, 16 to 250 ms. The rate
// may be the slowest or the fastest plausible one; then the counter may differ from the clock by
// half a millisecond and a 64th.
func TestLimitsOfTheCounter(t *testing.T) {
	for _, tt := range []struct {
		age, trust int    // in milliseconds
		rate       uint64 // ticks a millisecond while it is measured
		counted    uint64 // in the 32 ms after it
		right      bool
	}{
		{16, 16, 1e6 - 1, 32 * (1e6 - 1), false}, {16, 16, 1e6, 32e6, true},
		{16, 16, 2e6, 64e6, true}, {16, 16, 2e6 + 1, 32 * (2e6 + 1), false},
		{250, 250, 1e6, 33e6, true}, {250, 250, 1e6, 33e6 + 1, false},
		{1000, 250, 1e6, 31e6, true}, {1000, 250, 1e6, 31e6 - 1, false},
	} {
		count := uint64(1e15)
		c := newClock(noon.Add(-time.Duration(tt.age) * time.Millisecond).Add(750 * time.Microsecond))
		var k clock
		k.start(c.Now, counter{read: func() uint64 { return count }, slowest: 1e6, fastest: 2e6})
		var r local
		pass := func(d time.Duration, ticks uint64) bool {
			c.pass(d)
			count += ticks
			return k.read(&r.reading, &r.compared)
		}
		if !pass(measured*time.Millisecond-1, measured*tt.rate) || r.advance(count) {
			t.Fatalf("%+v: a rate was measured in less than 16 ms", tt)
		}
		// A rate measured in a short time is inexact, and is measured again.
		extra := uint64(0)
		if tt.age > measured {
			extra = tt.rate / 32
		}
		right := pass(1, extra)
		right = pass(time.Duration(tt.age-measured)*time.Millisecond, (uint64(tt.age)-measured)*tt.rate-extra) && right
		if right {
			trust, last := uint64(tt.trust)*tt.rate, noon.UnixMilli()+int64(tt.trust)-1
			if begins := count - tt.rate*3/4; r.advance(begins-1) || !r.advance(begins) || r.ms != noon.UnixMilli() ||
				!r.advance(begins+trust-1) || r.ms != last || r.advance(begins+trust) {
				t.Errorf("%+v: %+v does not follow the clock for so long", tt, r)
			}
			right = pass(2*measured*time.Millisecond, tt.counted)
		}
		if right != tt.right || k.wrong.Load() == tt.right {
			t.Errorf("%+v: right %v, wrong %v", tt, right, k.wrong.Load())
		}
	}
}

// A goroutine that is stopped after it has read the counter, or the clock, draws no conclusion:
// the counter is not wrong, and the next ID reads the clock. Nor are short interruptions blamed on
// it.
func TestStoppedWhileReading(t *testing.T) {
	for name, stop := range map[string]func(c *fakeClock, once func()){
		"after the counter": func(c *fakeClock, once func()) { c.counted = once },
		"after the clock":   func(c *fakeClock, once func()) { c.hook = once },
	} {
		c := newClock(noon)
		g, _ := c.learned(t)
		c.pass((trusted + 4) * time.Millisecond)
		stop(c, func() {
			c.counted, c.hook = nil, nil
			c.pass(5 * time.Second)
		})
		reads := c.reads
		if c.late(t, g); c.reads == reads {
			t.Errorf("%s: the clock was not read: the test is meaningless", name)
		}
		if late := c.late(t, g); late != 0 || g.clock.wrong.Load() {
			t.Errorf("%s: late by %v, wrong: %v", name, late, g.clock.wrong.Load())
		}
	}
	c := newClock(noon)
	c.counted = func() { // while New reads it first
		c.counted = nil
		c.pass(5 * time.Second)
	}
	if g, _ := c.learned(t); g.clock.wrong.Load() {
		t.Error("in New: the counter is not used")
	}
	for seed := range uint64(50) {
		c := newClock(noon)
		r := rand.New(rand.NewPCG(seed, 1))
		c.counted = func() { c.pass(time.Duration(r.IntN(20)) * time.Microsecond) }
		g := c.counting()
		onOne(t, g)
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

// The counter is used with the system clock only. Options that are nil change nothing.
func TestCounterIsForTheSystemClock(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []Option
		used bool
	}{
		"default":          {[]Option{nil, WithSource(nil), WithClock(nil), WithMeterProvider(nil)}, true},
		"set again":        {[]Option{WithClock(newClock(noon).Now), WithClock(nil)}, true},
		"a test's clock":   {[]Option{WithClock(newClock(noon).Now)}, false},
		"a clock function": {[]Option{WithClock(time.Now)}, false},
	} {
		used := systemCounter().read != nil && tt.used
		if g := New(tt.opts...); (g.clock.counter.read() != 0) != used || g.clock.wrong.Load() == used || g.eras.untimed.Load() == tt.used {
			t.Errorf("%s: counter %d, wrong %v", name, g.clock.counter.read(), g.clock.wrong.Load())
		}
	}
}

// Each ID is within a millisecond of the clock while all processors are overloaded. The
// system's counter is used, if there is one.
func TestTimeUnderLoad(t *testing.T) {
	n, workers := 500_000, 4*runtime.GOMAXPROCS(0)
	if testing.Short() {
		n /= 10
	} else if os.Getenv("TRACEFLAKE_NIGHTLY") != "" {
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
				if at := traceid.Time(id); at.Before(before.Add(-2*time.Millisecond)) || at.After(after.Add(time.Millisecond)) {
					t.Errorf("an ID made between %v and %v has the time %v", before, after, at)
					return
				}
			}
		})
	}
	wg.Wait()
	found := systemCounter().read != nil
	for i := 0; i < 40 && found && g.clock.rate.Load() == 0; i++ { // a reading that was interrupted does not count
		time.Sleep(trusted * time.Millisecond)
		g.NewIDs(t.Context())
	}
	if found != (g.clock.rate.Load() != 0) || found == g.clock.wrong.Load() {
		t.Errorf("a counter was found: %v; rate %d, wrong: %v", found, g.clock.rate.Load(), g.clock.wrong.Load())
	}
}
