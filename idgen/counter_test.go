package idgen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// world is a clock and a counter that a test moves, together or separately.
type world struct {
	start  time.Time // with a monotonic part
	passed time.Duration
	step   int64 // steps of the wall clock only, in seconds
	count  float64
	rate   float64 // ticks a nanosecond
	reads  int     // of the clock
}

func newWorld() *world {
	start := time.Now()
	return &world{start: start.Add(-time.Duration(start.Nanosecond())), rate: 2.5, count: 1e15}
}

func (w *world) pass(d time.Duration) {
	w.passed += d
	w.count += w.rate * float64(d)
}

func (w *world) Now() time.Time {
	w.reads++
	t := w.start.Add(w.passed)
	// Step the wall clock and leave the monotonic one: package time keeps
	// seconds above 30 bits of nanoseconds.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(w.step) << 30
	return t
}

// uncounted is the world's clock for a source.
type uncounted struct{ *world }

func (u uncounted) Now() time.Time {
	defer func(reads int) { u.reads = reads }(u.reads)
	return u.world.Now()
}

// generator returns a generator that trusts the world's counter.
func (w *world) generator(opts ...Option) *Generator {
	g := New(append(opts, WithClock(w), optionFunc(func(c config) config {
		c.counter = counter{read: func() uint64 { return uint64(w.count) }, slowest: 0.5e6, fastest: 10e6}
		return c
	}))...)
	g.clock.untimed.Store(false)
	g.clock.counter.read = func() uint64 { return uint64(w.count) }
	g.clock.wrong.Store(false)
	return g
}

// processor keeps the test on one processor. The function that it returns simulates, for the
// generator, a move to another processor or back.
func processor(t *testing.T, g *Generator) (other func()) {
	old := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	away := new(stock)
	return func() {
		here := g.shards.take(g.shards.pin())
		g.shards.put(away)
		away = here
	}
}

// late returns how far the next ID's time is behind w's.
func (w *world) late(t *testing.T, g *Generator) time.Duration {
	t.Helper()
	id, _ := g.NewIDs(t.Context())
	return uncounted{w}.Now().Truncate(time.Millisecond).Sub(traceid.Time(id))
}

// learn lets g measure the counter's rate.
func (w *world) learn(t *testing.T, g *Generator) {
	t.Helper()
	for range 2 {
		w.late(t, g)
		w.pass(trust * time.Millisecond)
	}
	if g.clock.rate.Load() == 0 || g.clock.wrong.Load() {
		t.Fatal("the counter is not used")
	}
	w.late(t, g)
}

func half(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

// Each ID has the present millisecond, on either of two processors, and the clock is read once in
// 16 milliseconds.
func TestTimeByTheCounter(t *testing.T) {
	for _, rate := range []float64{0.6, 1, 2.5, 9.9} {
		w := newWorld()
		w.rate = rate
		g := w.generator(WithSource(newPrivate(uncounted{w})))
		other := processor(t, g)
		w.learn(t, g)
		r := rand.New(rand.NewPCG(1, 1))
		w.reads = 0
		began := w.passed
		seen := map[uint64]bool{}
		for i := range 300_000 {
			w.pass(time.Duration(r.IntN(20_000)) * time.Nanosecond)
			if i%1000 == 0 {
				other()
			}
			id, _ := g.NewIDs(t.Context())
			if late := w.start.Add(w.passed).Sub(traceid.Time(id)); late < -time.Millisecond/8 || late > time.Millisecond*9/8 {
				t.Fatalf("rate %v, ID %d: late by %v", rate, i, late)
			}
			if seen[half(id)] {
				t.Fatalf("rate %v, ID %d: the clear half of %s is a duplicate", rate, i, id)
			}
			seen[half(id)] = true
		}
		if most := 2 * int((w.passed-began)/(15*time.Millisecond)); w.reads > most {
			t.Errorf("rate %v: the clock was read %d times in %v, want at most %d", rate, w.reads, w.passed-began, most)
		}
		if g.clock.wrong.Load() {
			t.Errorf("rate %v: the counter is no longer used", rate)
		}
	}
}

// Ready-made IDs end with their second by the counter, without the timer.
func TestSecondEndsByTheCounter(t *testing.T) {
	w := newWorld()
	fills := 0
	g := w.generator(WithSource(&hooked{private: newPrivate(uncounted{w}), filled: func() { fills++ }}))
	processor(t, g)
	w.learn(t, g)
	w.pass(time.Second - w.passed%time.Second - 3*time.Millisecond)
	w.late(t, g)
	before, reads := fills, w.reads
	w.pass(2 * time.Millisecond)
	if w.late(t, g); fills != before || w.reads != reads {
		t.Fatalf("%d fills, %d readings within the second: the test is meaningless", fills-before, w.reads-reads)
	}
	w.pass(2 * time.Millisecond)
	if w.late(t, g); fills != before+1 || w.reads != reads {
		t.Errorf("%d fills, %d readings in the next second, want 1 and 0", fills-before, w.reads-reads)
	}
}

// Ready IDs are counted under the right kind.
func TestReadyIDsAreCounted(t *testing.T) {
	w := newWorld()
	g := w.generator(WithSource(newPrivate(uncounted{w})))
	processor(t, g)
	w.learn(t, g)
	count := func() (traces, spans int64) {
		s := g.shards.take(g.shards.pin())
		g.counts.used(s)
		g.shards.put(s)
		return g.counts.traces.Load(), g.counts.spans.Load()
	}
	traces, spans := count()
	for range 50 {
		g.NewIDs(t.Context())
		g.NewSpanID(t.Context(), trace.TraceID{})
	}
	if t2, s2 := count(); t2-traces != 50 || s2-spans != 100 {
		t.Errorf("%d trace IDs and %d span IDs counted, want 50 and 100", t2-traces, s2-spans)
	}
}

// A run ends with its millisecond, even if no clock is read in between.
func TestRunEndsWithItsMillisecond(t *testing.T) {
	w := newWorld()
	g := w.generator()
	processor(t, g)
	w.learn(t, g)
	w.pass(time.Millisecond)
	for range 100 { // so that a long run is left
		w.late(t, g)
	}
	reads := w.reads
	for range 5 {
		w.pass(time.Millisecond)
		if late := w.late(t, g); late != 0 {
			t.Errorf("late by %v", late)
		}
	}
	if w.reads != reads {
		t.Error("the clock was read: the test is meaningless")
	}
}

// A step of the clock in either direction is noticed within 16 ms on every processor.
func TestStepsOfTheClock(t *testing.T) {
	for _, step := range []int64{1, 5, 3600, -3, -3600} {
		w := newWorld()
		g := w.generator()
		other := processor(t, g)
		w.learn(t, g)
		other()
		w.learn(t, g)
		// This processor reads the clock, and the other one does so 10 ms later. So the other one
		// still trusts its counter when this one notices the step.
		w.pass(20 * time.Millisecond)
		w.late(t, g)
		other()
		w.pass(10 * time.Millisecond)
		w.late(t, g)
		w.step += step
		w.pass(7 * time.Millisecond)
		other()
		if late := w.late(t, g); late != 0 {
			t.Errorf("step %d s: late by %v", step, late)
		}
		steps := g.counts.steps.Load()
		if (steps == 1) != (step < 0) || steps > 1 {
			t.Errorf("step %d s: the order counts %d steps", step, steps)
		}
		other()
		if late := w.late(t, g); step < 0 && late != 0 {
			t.Errorf("step %d s: late by %v on the other processor", step, late)
		}
		w.pass(17 * time.Millisecond)
		for range 3 {
			other()
			if late := w.late(t, g); late != 0 {
				t.Errorf("step %d s: late by %v in the end", step, late)
			}
		}
		if g.counts.steps.Load() != steps {
			t.Errorf("step %d s: the order counts %d steps in the end", step, g.counts.steps.Load())
		}
	}
}

// Within the hold, the order continues from its position.
func TestSmallStepBackIsHeld(t *testing.T) {
	w := newWorld()
	g := w.generator()
	processor(t, g)
	w.learn(t, g)
	before, _ := g.NewIDs(t.Context())
	w.step--
	for range 200 {
		w.pass(3 * time.Millisecond)
		id, _ := g.NewIDs(t.Context())
		if half(id) <= half(before) {
			t.Fatalf("%s after %s", id, before)
		}
		before = id
	}
	if g.counts.steps.Load() != 0 {
		t.Errorf("%d steps", g.counts.steps.Load())
	}
}

// A wrong counter is never used again, and does little harm until it is noticed.
func TestWrongCounters(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(w *world)
	}{
		{"jumps forward", func(w *world) { w.count += 1e12 }},
		{"jumps forward a little", func(w *world) { w.count += 2.5e6 * 4 }},
		{"jumps back", func(w *world) { w.count -= 1e12 }},
		{"jumps back a little", func(w *world) { w.count -= 2.5e6 * 4 }},
		{"jumps to zero", func(w *world) { w.count = 0 }},
		{"stops", func(w *world) { w.rate = 0 }},
		{"runs backwards", func(w *world) { w.rate = -2.5 }},
		{"is slower on another CPU", func(w *world) { w.rate = 2 }},
		{"is faster on another CPU", func(w *world) { w.rate = 3 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			g := w.generator()
			other := processor(t, g)
			w.learn(t, g)
			other()
			w.learn(t, g)
			tt.harm(w)
			for i := range 2000 {
				w.pass(777 * time.Microsecond)
				if i%7 == 0 {
					other()
				}
				if i == 1200 { // a second has ended: simulate the timer, which runs in real time
					g.clock.epoch.Add(1)
				}
				// An order that is ahead of the clock by less than the hold stays ahead: it never
				// goes back. Only a counter that stands still is wrong for longer than it is
				// trusted.
				late := w.late(t, g)
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

// A counter is never used if its rate is implausible or changes while it is being measured.
func TestCountersThatAreNeverUsed(t *testing.T) {
	for name, rate := range map[string]func(i int) float64{
		"stopped":   func(int) float64 { return 0 },
		"too slow":  func(int) float64 { return 0.4 },
		"too fast":  func(int) float64 { return 11 },
		"backwards": func(int) float64 { return -2 },
		"changing":  func(i int) float64 { return 1 + float64(i)/100 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			g := w.generator()
			processor(t, g)
			for i := range 300 {
				w.rate = rate(i)
				w.pass(1100 * time.Microsecond)
				// Only a counter that could be right for 16 ms is trusted for that long.
				if late := w.late(t, g); late != 0 && (name != "changing" || late.Abs() > 17*time.Millisecond) {
					t.Fatalf("call %d: late by %v", i, late)
				}
			}
			if g.clock.rate.Load() != 0 && !g.clock.wrong.Load() {
				t.Error("the counter is used")
			}
		})
	}
}

// readings is a clock with a counter of a million ticks a millisecond; both are moved by hand.
type readings struct {
	randflake.Clock
	now   time.Time
	count uint64
}

func (r *readings) Now() time.Time { return r.now }

func (r *readings) pass(d time.Duration, ticks uint64) {
	r.now, r.count = r.now.Add(d), r.count+ticks
}

func newReadings() (*readings, *clock) {
	r := &readings{now: beforeNoon, count: 1e15}
	k := newClock(randflake.SystemClock, counter{read: func() uint64 { return r.count }, slowest: 1e6, fastest: 2e6})
	k.Clock = r
	return r, k
}

var beforeNoon = time.Date(2026, 3, 14, 11, 59, 59, 983_750_000, time.UTC)

// The counter's rate is measured over at least 16 ms, and may be the slowest or the fastest
// plausible one. A millisecond begins where the clock says.
func TestRateOfTheCounter(t *testing.T) {
	for _, rate := range []uint64{1e6 - 1, 1e6, 2e6, 2e6 + 1} {
		w, k := newReadings()
		var r reading
		k.read(&r, w.count)
		w.pass(trust*time.Millisecond-1, trust*rate)
		k.read(&r, w.count)
		if k.rate.Load() != 0 || k.wrong.Load() || r.ticks != 0 {
			t.Errorf("rate %d after less than 16 ms: %d, wrong %v", rate, k.rate.Load(), k.wrong.Load())
		}
		w.pass(1, 0)
		epoch := k.epoch.Load()
		k.read(&r, w.count)
		plausible := rate >= 1e6 && rate <= 2e6
		if k.wrong.Load() == plausible || (k.epoch.Load() == epoch) != plausible {
			t.Errorf("rate %d: wrong %v, epoch %d, was %d", rate, k.wrong.Load(), k.epoch.Load(), epoch)
		}
		if !plausible {
			continue
		}
		want := reading{ms: w.now.UnixMilli(), since: w.count - rate*3/4, ticks: rate,
			at: w.now, count: w.count, origin: w.count - rate*3/4, first: w.now.UnixMilli()}
		if r != want {
			t.Errorf("rate %d: %+v, want %+v", rate, r, want)
		}
	}
}

// A stock follows the counter for 16 ms; its run ends with each millisecond, its IDs with their
// second.
func TestStockFollowsTheCounter(t *testing.T) {
	was := stock{word: 5, last: 9, made: 4, from: 90, until: 110,
		reading: reading{ms: 100, first: 100, origin: 1000, since: 1000, ticks: 10}}
	for _, tt := range []struct {
		count       uint64
		from, until int64
		ms          int64
		since       uint64
		ok          bool
	}{
		{1000, 90, 110, 100, 1000, true},
		{1009, 90, 110, 100, 1000, true},
		{1010, 90, 110, 101, 1010, true},
		{1159, 90, 116, 115, 1150, true},
		{1159, 90, 115, 115, 1150, false},
		{1159, 115, 116, 115, 1150, true},
		{1159, 116, 120, 115, 1150, false},
	} {
		s := was
		s.from, s.until = tt.from, tt.until
		if ok := s.at(tt.count); ok != tt.ok || s.ms != tt.ms || s.since != tt.since {
			t.Errorf("%+v: %v, ms %d since %d", tt, ok, s.ms, s.since)
		}
		if left := [3]uint64{s.word, s.last, s.made}; (left == [3]uint64{}) != (tt.ms != was.ms) {
			t.Errorf("%+v: %d words are left in the run", tt, left)
		}
	}
	s := was
	if s.at(1160) || s.ticks != 0 || s.ms != 100 || s.at(1160) {
		t.Errorf("after 16 ms: %+v", s.reading)
	}
}

// The counter may differ from the clock by half a millisecond and a 64th.
func TestCounterAgrees(t *testing.T) {
	for _, tt := range []struct {
		counted uint64
		right   bool
	}{{33e6, true}, {33e6 + 1, false}, {31e6, true}, {31e6 - 1, false}} {
		w, k := newReadings()
		var r reading
		k.read(&r, w.count)
		w.pass(trust*time.Millisecond, trust*1e6)
		k.read(&r, w.count)
		w.pass(2*trust*time.Millisecond, tt.counted)
		if k.read(&r, w.count); k.wrong.Load() == tt.right {
			t.Errorf("%d ticks in 32 ms: wrong %v", tt.counted, k.wrong.Load())
		}
	}
}

// A goroutine that is stopped between reading the counter and the clock draws no conclusion: the
// counter is not wrong, and the next ID reads the clock.
func TestStoppedWhileReading(t *testing.T) {
	w := newWorld()
	g := w.generator()
	processor(t, g)
	w.learn(t, g)
	w.pass(20 * time.Millisecond)
	honest := g.clock.counter.read
	stopped := false
	g.clock.counter.read = func() uint64 {
		count := honest()
		if !stopped {
			stopped = true
			w.pass(5 * time.Second)
		}
		return count
	}
	reads := w.reads
	if late := w.late(t, g); late != 0 || w.reads == reads {
		t.Errorf("late by %v, the clock was read %d times", late, w.reads-reads)
	}
	if late := w.late(t, g); late != 0 || g.clock.wrong.Load() {
		t.Errorf("late by %v, wrong: %v", late, g.clock.wrong.Load())
	}
}

// Interruptions of some microseconds while the clock is read are not blamed on the counter,
// neither while its rate is measured nor later.
func TestInterruptedWhileReading(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld()
		g := w.generator()
		processor(t, g)
		r := rand.New(rand.NewPCG(seed, 1))
		honest := g.clock.counter.read
		g.clock.counter.read = func() uint64 {
			w.pass(time.Duration(r.IntN(20)) * time.Microsecond)
			return honest()
		}
		for range 1000 {
			w.pass(time.Duration(r.IntN(3000)) * time.Microsecond)
			if late := w.late(t, g); late.Abs() > time.Millisecond {
				t.Fatalf("seed %d: late by %v", seed, late)
			}
		}
		if g.clock.rate.Load() == 0 || g.clock.wrong.Load() {
			t.Fatalf("seed %d: the counter is not used", seed)
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

// Ten million IDs are within a millisecond of the clock while all processors are overloaded.
func TestTimeUnderLoad(t *testing.T) {
	n, workers := 10_000_000, 4*runtime.GOMAXPROCS(0)
	if RaceEnabled || runtime.GOARCH != "amd64" { // under an emulator, most likely
		n /= 20
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
	if runtime.GOARCH == "amd64" {
		t.Logf("rate %d, wrong %v", g.clock.rate.Load(), g.clock.wrong.Load())
	}
}

// A generation that one processor notices is valid for all at once.
func TestGenerationOnEveryProcessor(t *testing.T) {
	w := newWorld()
	fills := 0
	s := &hooked{private: newPrivate(w), filled: func() { fills++ }}
	g := w.generator(WithSource(s))
	other := processor(t, g)
	for range 2 {
		g.NewIDs(t.Context())
		other()
	}
	s.generation.Add(1)
	w.pass((trust + 1) * time.Millisecond)
	g.NewIDs(t.Context()) // notices the change
	other()
	before := fills
	if g.NewSpanID(t.Context(), trace.TraceID{}); fills == before {
		t.Error("the span ID is of an earlier generation")
	}
}

// The rest of a run is not used after the order has started again, not even when the clock reaches
// the run's millisecond once more.
func TestRunEndsWhenTheOrderBeginsAnew(t *testing.T) {
	w := newWorld()
	g := w.generator()
	other := processor(t, g)
	w.learn(t, g)
	other()
	w.learn(t, g)
	w.pass(time.Millisecond)
	seen := map[uint64]bool{}
	take := func(n int) {
		t.Helper()
		for range n {
			id, _ := g.NewIDs(t.Context())
			if seen[half(id)] {
				t.Fatalf("the clear half of %s is a duplicate", id)
			}
			seen[half(id)] = true
		}
	}
	take(100)
	here := g.shards.take(g.shards.pin())
	left := here.last - here.word
	g.shards.put(here)
	if left < 10 {
		t.Fatalf("only %d words are left in the run: the test is meaningless", left)
	}
	ms := w.passed
	other()
	w.step -= 3600
	w.pass(20 * time.Millisecond)
	w.late(t, g)
	if g.counts.steps.Load() != 1 {
		t.Fatal("the order did not start again")
	}
	clear(seen)
	w.step += 3600 // now the clock is where it was, to the millisecond
	w.passed, w.count = ms, w.count+1e9
	g.clock.epoch.Add(1) // the timer has run
	take(500)
	other()
	take(100)
}

// While the clock is out of range, each call counts as a refusal, whatever the source.
func TestClockOutOfRangeIsRefusedEachTime(t *testing.T) {
	for _, year := range []int{2019, 2090} {
		w := newWorld()
		w.start = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		g := w.generator(WithSource(newPrivate(randflake.SystemClock)))
		processor(t, g)
		const calls = 500
		for range calls {
			w.pass(200 * time.Microsecond)
			g.NewIDs(t.Context())
		}
		if n := g.Fallbacks(); n != calls {
			t.Errorf("%d: %d fallbacks in %d calls", year, n, calls)
		}
	}
}
