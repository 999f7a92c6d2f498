package idgen

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// in2026 runs f in a bubble of fake time; those start in 2000.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// The timer runs while IDs are asked for and stops by itself.
func TestTimerStopsWhenIdle(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		if g.clock.running.Load() {
			t.Error("the timer runs before the first ID")
		}
		for range 3 {
			g.NewSpanID(t.Context(), trace.TraceID{})
			if g.clock.running.Load() {
				t.Error("the timer runs for one ID")
			}
			for range busy {
				g.NewSpanID(t.Context(), trace.TraceID{})
			}
			if !g.clock.running.Load() || g.clock.millis.Load() == 0 {
				t.Error("the timer does not run")
			}
			time.Sleep(ticks*tick + tick/2)
			if g.clock.running.Load() || g.clock.millis.Load() != 0 {
				t.Error("the timer still runs")
			}
		}
	})
}

// While the timer runs the time in IDs is at most 2 ms late.
func TestCoarseTimeIsNotLate(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New()
		for i := range 1000 {
			id, _ := g.NewIDs(t.Context())
			for range busy { // or the timer would not run
				g.NewSpanID(t.Context(), id)
			}
			if late := time.Since(Time(id)); late < 0 || late > 2*tick {
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
	if late := time.Since(Time(id)); late > time.Minute {
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
// next reading of the clock.
func TestGeneration(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := &generations{private: newPrivate(randflake.SystemClock)}
		g := New(WithSource(s))
		for i := uint64(1); i <= 5; i++ {
			fills := s.fills.Load()
			g.NewSpanID(t.Context(), trace.TraceID{})
			if s.fills.Load() == fills {
				t.Errorf("an ID of an earlier generation than %d", i)
			}
			for range busy {
				g.NewSpanID(t.Context(), trace.TraceID{})
			}
			s.generation.Add(1)
			time.Sleep(2 * tick)
			synctest.Wait()
			if g.generation.Load() != i {
				t.Errorf("generation %d is not known after %v", i, 2*tick)
			}
		}
		time.Sleep(2 * ticks * tick) // idle: the next call reads the clock itself
		s.generation.Add(1)
		fills := s.fills.Load()
		g.NewSpanID(t.Context(), trace.TraceID{})
		if s.fills.Load() == fills {
			t.Error("an ID of an earlier generation after an idle time")
		}
	})
}

// The order word: what other goroutines did while one stood still between
// reading the clock and taking its word is no step of the clock.
func TestOrderAfterAStall(t *testing.T) {
	clock := &handClock{}
	o := order{clock: &coarse{clock: clock, exact: true}}
	set := func(ms uint64) { clock.ms = EpochMillis + int64(ms) }
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

type handClock struct{ ms int64 }

func (c *handClock) Now() time.Time         { return time.UnixMilli(c.ms) }
func (c *handClock) Elapsed() time.Duration { return 0 }

func TestOrderIsNeverZero(t *testing.T) {
	clock := &handClock{ms: EpochMillis}
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
	clock := &handClock{ms: EpochMillis + 5}
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
