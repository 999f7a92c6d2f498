package idgen

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// in2026 runs f in a bubble of fake time; those start in 2000.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// The timers run while IDs are asked for and stop by themselves.
func TestTimersStopWhenIdle(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		if g.clock.running.Load() || g.clock.waiting.Load() {
			t.Error("a timer runs before the first ID")
		}
		for range 3 {
			g.NewIDs(t.Context())
			g.NewSpanID(t.Context(), trace.TraceID{})
			if g.clock.running.Load() {
				t.Error("the ticks run for two IDs")
			}
			if !g.clock.waiting.Load() {
				t.Error("nobody waits for the second's end")
			}
			for range busy {
				g.NewIDs(t.Context())
			}
			if !g.clock.running.Load() || g.clock.millis.Load() == 0 {
				t.Error("the ticks do not run")
			}
			time.Sleep(ticks*tick + tick/2)
			if g.clock.running.Load() || g.clock.millis.Load() != 0 {
				t.Error("the ticks still run")
			}
			time.Sleep(time.Second)
			if g.clock.waiting.Load() || g.clock.rough.Load() != 0 {
				t.Error("somebody still waits for the second's end")
			}
		}
	})
}

// A trace now and then, however many they are in all, does not start the ticks.
func TestBusyIsWithinAMillisecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		for range 10 * busy {
			for range busy / 2 {
				g.NewIDs(t.Context())
			}
			if g.clock.running.Load() {
				t.Fatal("the ticks run")
			}
			time.Sleep(tick)
		}
	})
}

// Span IDs know the second, and read the clock once in it.
func TestSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		reads := 0
		k := newCoarse(randflake.SystemClock)
		k.each = func() { reads++ }
		const step = 7 * time.Millisecond
		for range 1000 {
			if got, want := time.UnixMilli(k.second()).Truncate(time.Second), time.Now().Truncate(time.Second); !got.Equal(want) {
				t.Fatalf("second %v, want %v", got, want)
			}
			time.Sleep(step)
		}
		if most := 2 * (2 + int(1000*step/time.Second)); reads > most {
			t.Errorf("the clock was read %d times, want at most %d", reads, most)
		}
	})
}

// While the timer runs the time in IDs is at most 2 ms late.
func TestCoarseTimeIsNotLate(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		for i := range 1000 {
			id, _ := g.NewIDs(t.Context())
			for range busy { // or the ticks would not run
				g.NewIDs(t.Context())
			}
			if late := time.Since(traceid.Time(id)); late < 0 || late > 2*tick {
				t.Fatalf("late by %v", late)
			}
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		}
	})
}

// A reading that comes in while the timer stops must not stay: nothing would
// ever write a newer one.
func TestReadDoesNotOutliveTheTimer(t *testing.T) {
	c := &slowClock{entered: make(chan struct{}), leave: make(chan struct{})}
	k := newCoarse(randflake.SystemClock)
	k.clock = c
	k.millis.Store(1)
	go func() {
		<-c.entered
		k.millis.Store(0) // the timer stops while the clock is read
		close(c.leave)
	}()
	k.read()
	if got := k.millis.Load(); got != 0 {
		t.Errorf("the time stays at %d", got)
	}
}

// A new batch is held against the clock, not against what a late timer left: it
// is of the second that the clock tells, so nothing was borrowed.
func TestLateSecondIsNotBorrowed(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		g.clock.waiting.Store(true) // and the second's end is overdue
		g.clock.rough.Store(time.Now().Add(-time.Second).UnixMilli())
		g.NewSpanID(t.Context(), trace.TraceID{})
		if ms := g.counts.borrowed.Load(); ms != 0 {
			t.Errorf("borrowed %d ms", ms)
		}
	})
}

// After a stop or a step of the clock the second that a timer guards is another.
func TestReadMendsTheSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		k := newCoarse(randflake.SystemClock)
		k.waiting.Store(true)
		k.rough.Store(time.Now().Add(-time.Minute).UnixMilli())
		time.Sleep(950 * time.Millisecond)
		k.read()
		for range 3 {
			if got, want := k.second()/1000, time.Now().Unix(); got != want {
				t.Errorf("second %d, want %d", got, want)
			}
			time.Sleep(60 * time.Millisecond)
		}
	})
}

type slowClock struct{ entered, leave chan struct{} }

func (c *slowClock) Now() time.Time {
	close(c.entered)
	<-c.leave
	return time.Now()
}
func (c *slowClock) Elapsed() time.Duration { return 0 }

// After a stop, as by SIGSTOP, the timer's time is old until it runs again. The
// first refill notices, since the source reads the clock.
func TestStopIsNoticedByTheRefill(t *testing.T) {
	g := New()
	old := time.Now().Add(-time.Hour)
	g.clock.running.Store(true) // and no tick to come
	g.clock.millis.Store(old.UnixMilli())
	g.order.word.Store(clampMillis(old.UnixMilli()) << sequenceBits) // as if IDs were made until the stop
	id, _ := g.NewIDs(t.Context())
	if late := time.Since(traceid.Time(id)); late > time.Minute {
		t.Errorf("late by %v", late)
	}
}

// A batch is good from two seconds before its second, since it may be borrowed,
// to that second's end; so after a larger step of the clock none of it is used.
func TestBatchIsOfItsSecond(t *testing.T) {
	clock := &handClock{ms: 1_800_000_000_000}
	b := new(batch)
	if err := b.fill(newPrivate(clock), 1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		at   int64
		want bool
	}{{-2001, false}, {-2000, true}, {0, true}, {999, true}, {1000, false}} {
		if _, _, ok := b.take(1, 0, clock.ms+tt.at, 0); ok != tt.want {
			t.Errorf("at %d ms: %v", tt.at, ok)
		}
	}
}

type generations struct {
	*private
	generation, fills atomic.Uint64
}

func (s *generations) Generation() uint64 { return s.generation.Load() }
func (s *generations) Fill(dst []randflake.ID) (int, time.Time, error) {
	s.fills.Add(1)
	return s.private.Fill(dst)
}

// When the source's generation changes, ready-made IDs are thrown away: at the
// next reading of the clock, which is within 2 ms for traces and a second for spans.
func TestGeneration(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := &generations{private: newPrivate(randflake.SystemClock)}
		g := New(WithSource(s))
		fresh := func(make func()) bool {
			fills := s.fills.Load()
			make()
			return s.fills.Load() > fills
		}
		aTrace := func() { g.NewIDs(t.Context()) }
		aSpan := func() { g.NewSpanID(t.Context(), trace.TraceID{}) }
		aTrace()
		for _, traces := range []int{1, 2 * busy} { // without and with the ticks
			for range 5 {
				for range traces {
					aTrace()
				}
				s.generation.Add(1)
				time.Sleep(2 * tick)
				synctest.Wait()
				if !fresh(aTrace) {
					t.Error("a trace ID of an earlier generation")
				}
			}
			time.Sleep(2 * ticks * tick)
		}
		for range 5 {
			aSpan()
			s.generation.Add(1)
			time.Sleep(time.Second)
			synctest.Wait()
			if !fresh(aSpan) {
				t.Error("a span ID of an earlier generation")
			}
		}
	})
}

// hooked is a source whose methods call what a test wants to happen meanwhile.
type hooked struct {
	*private
	generation         atomic.Uint64
	generating, filled func()
}

func (s *hooked) Generation() uint64 {
	now := s.generation.Load()
	if f := s.generating; f != nil {
		s.generating = nil
		f()
	}
	return now
}

func (s *hooked) Fill(dst []randflake.ID) (int, time.Time, error) {
	n, second, err := s.private.Fill(dst)
	if s.filled != nil {
		s.filled()
	}
	return n, second, err
}

// A reading of the generation that took long does not bring an old one back.
func TestGenerationNeverGoesBack(t *testing.T) {
	s := &hooked{private: newPrivate(randflake.SystemClock)}
	g := New(WithSource(s))
	s.generation.Store(1)
	s.generating = func() { // while one knows 1
		s.generation.Store(2)
		g.clock.look()
	}
	g.clock.look()
	if got := g.generation.Load(); got != 2 {
		t.Errorf("generation %d, want 2", got)
	}
}

// IDs that were made while the generation changed count as of the old one.
func TestGenerationChangesDuringTheFill(t *testing.T) {
	clock := &handClock{ms: 1_800_000_000_000}
	s := &hooked{private: newPrivate(clock)}
	g := New(WithSource(s), WithClock(clock))
	s.filled = func() {
		s.filled = nil
		s.generation.Add(1)
		g.clock.look()
	}
	g.NewSpanID(t.Context(), trace.TraceID{})
	again := false
	s.filled = func() { again = true }
	g.NewSpanID(t.Context(), trace.TraceID{})
	if !again {
		t.Error("an ID of before the change was handed out")
	}
}

// A refusal in the second of the batch before hands none of that batch out again.
func TestRefusalInTheSameSecond(t *testing.T) {
	clock := &handClock{ms: 1_800_000_000_000}
	s := &refusing{private: newPrivate(clock)}
	g := New(WithClock(clock), WithSource(s))
	seen := map[trace.SpanID]bool{}
	for i := range 8 * batchSize {
		s.refuse = i >= 10
		id := g.NewSpanID(t.Context(), trace.TraceID{})
		if seen[id] {
			t.Fatalf("call %d gave an ID for the second time", i)
		}
		seen[id] = true
	}
}

// A source that says it gave what it cannot have given is one that refuses.
func TestSourceMiscounts(t *testing.T) {
	for _, n := range []int{-1, batchSize + 1} {
		g := New(WithSource(miscounting(n)))
		if id := g.NewSpanID(t.Context(), trace.TraceID{}); !id.IsValid() || g.Fallbacks() != 1 {
			t.Errorf("%d IDs: %v, %d fallbacks", n, id, g.Fallbacks())
		}
	}
}

type miscounting int

func (n miscounting) Fill([]randflake.ID) (int, time.Time, error) { return int(n), time.Now(), nil }

type refusing struct {
	*private
	refuse bool
}

func (s *refusing) Fill(dst []randflake.ID) (int, time.Time, error) {
	if s.refuse {
		return 0, time.Time{}, randflake.ErrExhausted
	}
	return s.private.Fill(dst)
}

// The order word: what other goroutines did while one stood still between
// reading the clock and taking its word is no step of the clock.
func TestOrderAfterAStall(t *testing.T) {
	clock := &handClock{}
	o := order{clock: &coarse{clock: clock, exact: true}}
	set := func(ms uint64) { clock.ms = traceid.EpochMillis + int64(ms) }
	set(1_000_000)
	stale := uint64(1_000_000)
	first := o.next(stale)
	set(1_060_000) // a minute later
	second := o.next(1_060_000)
	third := o.next(stale)
	if second <= first || third <= second {
		t.Errorf("%d, %d, %d do not increase", first, second, third)
	}
	// But a real step is followed.
	set(1_000_000)
	if got := o.next(1_000_000) >> sequenceBits; got != 1_000_000 {
		t.Errorf("after a step back: ms %d", got)
	}
}

// While a goroutine reads the clock, others go on: what they did is no step of the clock.
func TestOrderWhileTheClockIsRead(t *testing.T) {
	clock := &movingClock{}
	o := order{clock: &coarse{clock: clock, exact: true}}
	clock.ms = traceid.EpochMillis + 1_000_000
	var during uint64
	clock.read = func() {
		clock.read = nil
		clock.ms += 60_000
		during = o.next(1_060_000)
	}
	if after := o.next(1_000_000); after <= during {
		t.Errorf("%d, then %d", during, after)
	}
	if n := o.steps.Load(); n != 0 {
		t.Errorf("%d steps of the clock", n)
	}
}

type movingClock struct {
	handClock
	read func()
}

func (c *movingClock) Now() time.Time {
	now := c.handClock.Now()
	if c.read != nil {
		c.read()
	}
	return now
}

type handClock struct{ ms int64 }

func (c *handClock) Now() time.Time         { return time.UnixMilli(c.ms) }
func (c *handClock) Elapsed() time.Duration { return 0 }

func TestOrderIsNeverZero(t *testing.T) {
	clock := &handClock{ms: traceid.EpochMillis}
	o := order{clock: &coarse{clock: clock, exact: true}}
	for range 3 {
		if o.next(0) == 0 {
			t.Error("zero")
		}
	}
	o.word.Store(10 * holdWords)
	if got := o.next(0); got != 1 {
		t.Errorf("after a step back to the epoch: %d", got)
	}
}

// A used-up sequence runs into the next millisecond.
func TestOrderCarries(t *testing.T) {
	clock := &handClock{ms: traceid.EpochMillis + 5}
	o := order{clock: &coarse{clock: clock, exact: true}}
	o.word.Store(5<<sequenceBits | maxSequence)
	if got := o.next(5); got != 6<<sequenceBits {
		t.Errorf("%x", got)
	}
}

// A step back by more than the source holds brings one new secret, however
// many notice it.
func TestPrivateSourceTakesANewSecret(t *testing.T) {
	clock := &handClock{ms: 1_800_000_000_000}
	p := newPrivate(clock)
	ids := make([]randflake.ID, 10)
	fill := func() {
		t.Helper()
		if n, _, err := p.Fill(ids); n != len(ids) || err != nil {
			t.Fatal(n, err)
		}
	}
	fill()
	first := p.generator.Load()
	clock.ms -= 1900
	fill()
	if p.generator.Load() != first {
		t.Error("a new secret for a small step")
	}
	clock.ms -= 60_000
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, _, err := p.Fill(make([]randflake.ID, 10)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	second := p.generator.Load()
	if second == first {
		t.Error("no new secret for a large step")
	}
	fill()
	if p.generator.Load() != second {
		t.Error("another secret without another step")
	}
	clock.ms = 0
	if n, _, err := p.Fill(ids); n != 0 || err == nil || p.generator.Load() != second {
		t.Errorf("at 1970: %d, %v", n, err)
	}
}
