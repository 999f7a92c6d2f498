package idgen

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// in2026 runs f in a bubble of fake time that starts in 2026; bubbles otherwise start in 2000.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// withoutCounter makes g read the clock: the counter does not know a bubble's time.
func withoutCounter(g *Generator) *Generator {
	g.clock.wrong.Store(true)
	return g
}

type handClock struct{ ms int64 }

func (c *handClock) Now() time.Time { return time.UnixMilli(c.ms) }

const someMillis = 1_800_000_000_000

// reports collects the errors passed to otel.Handle.
type reports struct {
	mu   sync.Mutex
	errs []error
}

func (r *reports) Handle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func collectReports(t *testing.T) *reports {
	r, old := &reports{}, otel.GetErrorHandler()
	otel.SetErrorHandler(r)
	t.Cleanup(func() { otel.SetErrorHandler(old) })
	return r
}

// The timer runs at the end of a second in which IDs are made, and never otherwise.
func TestTimerStopsWhenIdle(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := withoutCounter(New())
		idle := g.clock.epoch.Load()
		if g.clock.armed.Load() {
			t.Error("the timer runs before the first ID")
		}
		time.Sleep(3 * time.Hour)
		if n := g.clock.epoch.Load(); n != idle {
			t.Errorf("without an ID: epoch %d, want %d", n, idle)
		}
		for range 3 {
			g.NewIDs(t.Context())
			g.NewSpanID(t.Context(), trace.TraceID{})
			if !g.clock.armed.Load() {
				t.Error("the second does not end")
			}
			time.Sleep(time.Hour)
			idle++
			if g.clock.armed.Load() || g.clock.epoch.Load() != idle {
				t.Errorf("armed %v, epoch %d, want %d", g.clock.armed.Load(), g.clock.epoch.Load(), idle)
			}
		}
	})
}

// The timer runs once a second, however many IDs are made.
func TestTimerRunsOnceASecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := withoutCounter(New())
		first := g.clock.epoch.Load()
		const seconds = 10
		for range seconds * 100 {
			for range 50 {
				g.NewIDs(t.Context())
				g.NewSpanID(t.Context(), trace.TraceID{})
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := g.clock.epoch.Load() - first; n < seconds-1 || n > seconds+1 {
			t.Errorf("the timer ran %d times in %d s", n, seconds)
		}
	})
}

// The timer runs at the end of the second, to the millisecond.
func TestTimerRunsAtTheEndOfTheSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := withoutCounter(New())
		time.Sleep(400 * time.Millisecond)
		g.NewSpanID(t.Context(), trace.TraceID{})
		first := g.clock.epoch.Load()
		time.Sleep(600*time.Millisecond - time.Microsecond)
		if g.clock.epoch.Load() != first {
			t.Error("the timer ran before the end of the second")
		}
		time.Sleep(2 * time.Microsecond)
		if g.clock.epoch.Load() == first {
			t.Error("the timer did not run at the end of the second")
		}
	})
}

// Ready-made IDs expire with their second.
func TestSpanIDsHaveThePresentSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := &seconds{private: newPrivate(randflake.SystemClock)}
		g := New(WithSource(s))
		for range 1000 {
			id := g.NewSpanID(t.Context(), trace.TraceID{})
			if got, want := int64(binary.BigEndian.Uint64(id[:])>>32), time.Now().Unix(); got != want {
				t.Fatalf("the ID's second is %d, want %d", got, want)
			}
			time.Sleep(37 * time.Millisecond)
			synctest.Wait()
		}
	})
}

// seconds is a source whose IDs begin with their second.
type seconds struct {
	*private
	n uint64
}

func (s *seconds) Fill(dst []randflake.ID) (int, time.Time, error) {
	now := time.Now()
	for i := range dst {
		s.n++
		dst[i] = randflake.ID(uint64(now.Unix())<<32 | s.n)
	}
	return len(dst), now.Truncate(time.Second), nil
}

// A closed generator has no timer and still makes IDs.
func TestClose(t *testing.T) {
	in2026(t, func(t *testing.T) {
		s := &seconds{private: newPrivate(randflake.SystemClock)}
		g := withoutCounter(New(WithSource(s)))
		use := func() {
			span := g.NewSpanID(t.Context(), trace.TraceID{}) // first: it does not read the clock
			id, _ := g.NewIDs(t.Context())
			if late := time.Since(traceid.Time(id)); late < 0 || late > time.Millisecond {
				t.Errorf("late by %v", late)
			}
			if got := int64(binary.BigEndian.Uint64(span[:]) >> 32); got != time.Now().Unix() {
				t.Errorf("the ID's second is %d, want %d", got, time.Now().Unix())
			}
		}
		use()
		for range 2 {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		closed := g.clock.epoch.Load()
		time.Sleep(time.Second)
		for range 10 {
			time.Sleep(700 * time.Millisecond)
			use()
		}
		if n := g.clock.epoch.Load(); n != closed {
			t.Errorf("the timer ran %d times after Close", n-closed)
		}
	})
}

// A batch may be used from two seconds before its second, since the second may be borrowed, until
// that second ends; so none of it is used after a larger step of the clock.
func TestBatchIsValidForItsSecond(t *testing.T) {
	for _, tt := range []struct {
		at   int64
		used bool
	}{{-2001, false}, {-2000, true}, {0, true}, {999, true}, {1000, false}} {
		clock := &handClock{ms: someMillis}
		s := &hooked{private: newPrivate(clock)}
		g := New(WithSource(s), WithClock(clock))
		g.NewSpanID(t.Context(), trace.TraceID{})
		filled := false
		s.filled = func() { filled = true }
		clock.ms += tt.at
		if g.NewSpanID(t.Context(), trace.TraceID{}); filled == tt.used {
			t.Errorf("at %d ms: used %v, want %v", tt.at, !filled, tt.used)
		}
	}
}

// hooked is a source whose methods call a test's functions.
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

// When the source's generation changes, the ready IDs are discarded the next time the clock is
// read.
func TestGeneration(t *testing.T) {
	in2026(t, func(t *testing.T) {
		fills := 0
		s := &hooked{private: newPrivate(randflake.SystemClock), filled: func() { fills++ }}
		g := New(WithSource(s))
		fresh := func(make func()) bool {
			before := fills
			make()
			return fills > before
		}
		for range 10 {
			g.NewIDs(t.Context())
			s.generation.Add(1)
			time.Sleep((trust + 1) * time.Millisecond)
			synctest.Wait()
			if !fresh(func() { g.NewIDs(t.Context()) }) {
				t.Error("the trace ID is of an earlier generation")
			}
			g.NewSpanID(t.Context(), trace.TraceID{})
			s.generation.Add(1)
			time.Sleep(time.Second)
			synctest.Wait()
			if !fresh(func() { g.NewSpanID(t.Context(), trace.TraceID{}) }) {
				t.Error("the span ID is of an earlier generation")
			}
		}
	})
}

// A slow check of the generation does not restore an old one.
func TestGenerationNeverGoesBack(t *testing.T) {
	errs := collectReports(t)
	s := &hooked{private: newPrivate(randflake.SystemClock)}
	g := New(WithSource(s))
	s.generation.Store(1)
	s.generating = func() { // while a goroutine has read 1
		s.generation.Store(2)
		g.check()
	}
	g.check()
	if got, life := g.generation.Load(), g.life.Load(); got != 2 || life != 1 {
		t.Errorf("generation %d, want 2; %d changes, want 1", got, life)
	}
	if len(errs.errs) != 0 || g.counts.restores.Load() != 0 {
		t.Errorf("%d restores, %v: want none", g.counts.restores.Load(), errs.errs)
	}
}

// The generation at the start does not count as a change.
func TestFirstGeneration(t *testing.T) {
	s := &hooked{private: newPrivate(randflake.SystemClock)}
	s.generation.Store(7)
	g := New(WithSource(s))
	if g.NewIDs(t.Context()); g.life.Load() != 0 {
		t.Errorf("%d changes", g.life.Load())
	}
}

// IDs that were made while the generation changed count as old.
func TestGenerationChangesDuringTheFill(t *testing.T) {
	clock := &handClock{ms: someMillis}
	s := &hooked{private: newPrivate(clock)}
	g := New(WithSource(s), WithClock(clock))
	fills := 0
	s.filled = func() {
		if fills++; fills == 1 {
			s.generation.Add(1)
		}
	}
	if g.NewSpanID(t.Context(), trace.TraceID{}); fills != 2 {
		t.Errorf("%d fills, want 2: an ID made before the change was handed out", fills)
	}
	// A generation that changes with each fill leads to random IDs, not to an endless loop.
	fills = 0
	s.filled = func() { fills++; s.generation.Add(1) }
	s.generation.Add(1)
	if id := g.NewSpanID(t.Context(), trace.TraceID{}); !id.IsValid() || g.Fallbacks() != 1 || fills != 3 {
		t.Errorf("%v, %d fallbacks, %d fills; want 1 and 3", id, g.Fallbacks(), fills)
	}
}

// After a refusal in the second of the previous batch, no ID of that batch is handed out again.
func TestRefusalInTheSameSecond(t *testing.T) {
	clock := &handClock{ms: someMillis}
	s := &refusing{private: newPrivate(clock)}
	g := New(WithClock(clock), WithSource(s))
	seen := map[trace.SpanID]bool{}
	for i := range 8 * batchSize {
		s.refuse = i >= 10
		id := g.NewSpanID(t.Context(), trace.TraceID{})
		if seen[id] {
			t.Fatalf("call %d returned a duplicate", i)
		}
		seen[id] = true
	}
}

// A source that reports an impossible count is treated as one that refuses.
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

// A process that is stopped while the source makes IDs, or whose clock is stepped, reads the clock
// again: both halves of the trace ID have the present time.
func TestStoppedWhileFilling(t *testing.T) {
	for _, moved := range []int64{10_000, -1000, -60_000, 0} {
		clock := &handClock{ms: someMillis}
		g := New(WithClock(clock), WithSource(fillFunc(func(dst []randflake.ID) (int, time.Time, error) {
			clock.ms += moved
			for i := range dst {
				dst[i] = randflake.ID(i + 1)
			}
			return len(dst), clock.Now().Truncate(time.Second), nil
		})))
		id, _ := g.NewIDs(t.Context())
		if !traceid.Time(id).Equal(clock.Now()) || g.counts.borrowed.Load() != 0 {
			t.Errorf("moved by %d ms: the ID's time is %v, want %v; %d ms borrowed",
				moved, traceid.Time(id), clock.Now(), g.counts.borrowed.Load())
		}
	}
}

type fillFunc func([]randflake.ID) (int, time.Time, error)

func (f fillFunc) Fill(dst []randflake.ID) (int, time.Time, error) { return f(dst) }

// Every ID of a batch is used, and the borrowed time is never negative.
func TestBatchIsUsedUp(t *testing.T) {
	clock := &handClock{ms: someMillis + 500}
	fills := 0
	g := New(WithClock(clock), WithSource(&hooked{private: newPrivate(clock), filled: func() { fills++ }}))
	s := new(stock)
	for range batchSize {
		if _, _, err := g.more(s, 1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if fills != 1 || g.counts.borrowed.Load() != 0 {
		t.Errorf("%d fills for %d IDs, %d ms borrowed; want 1, 0", fills, batchSize, g.counts.borrowed.Load())
	}
}

// A fill of exactly the IDs needed is enough, and no ID is counted before it is used.
func TestFillMakesEnough(t *testing.T) {
	s := &stock{counted: 7, traces: 7}
	err := s.fill(fillFunc(func(dst []randflake.ID) (int, time.Time, error) {
		dst[0], dst[1] = 1, 2
		return 2, time.UnixMilli(someMillis), randflake.ErrExhausted
	}), 2)
	if err != nil || s.next != 0 || s.end != 2 || s.counted != 0 || s.traces != 0 {
		t.Errorf("%v, [%d, %d), %d counted, %d for traces", err, s.next, s.end, s.counted, s.traces)
	}
}

// Each ID is counted once, under the right kind.
func TestUsedIDsAreCounted(t *testing.T) {
	var c counts
	s := new(stock)
	for i, tt := range []struct{ taken, traces, wantTraces, wantSpans int }{
		{0, 0, 0, 0}, {1, 0, 0, 1}, {1, 1, 1, 1}, {0, 0, 1, 1}, {2, 1, 2, 2}, {9, 3, 5, 8}, {0, 0, 5, 8},
	} {
		s.next += tt.taken
		s.traces += tt.traces
		c.used(s)
		if traces, spans := c.traces.Load(), c.spans.Load(); traces != int64(tt.wantTraces) || spans != int64(tt.wantSpans) {
			t.Errorf("step %d: %d traces, %d spans, want %d, %d", i, traces, spans, tt.wantTraces, tt.wantSpans)
		}
	}
}

// While a stock is being filled it has no other user: neither another goroutine that runs on the
// processor in the meantime nor one that calls from within the source.
func TestOneOwnerWhileFilling(t *testing.T) {
	clock := &handClock{ms: someMillis}
	s := &hooked{private: newPrivate(clock)}
	g := New(WithSource(s))
	var mu sync.Mutex
	seen := map[trace.SpanID]bool{}
	span := func() {
		id := g.NewSpanID(t.Context(), trace.TraceID{})
		mu.Lock()
		defer mu.Unlock()
		if seen[id] {
			t.Errorf("%s is a duplicate", id)
		}
		seen[id] = true
	}
	var depth atomic.Int64
	s.filled = func() {
		if depth.Add(1) == 1 {
			span() // from within the source
			var wg sync.WaitGroup
			wg.Go(span)
			wg.Wait()
		}
		depth.Add(-1)
	}
	for range 20 * batchSize {
		span()
	}
	// Many at once, also for the race detector.
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 4 * batchSize {
				span()
			}
		})
	}
	wg.Wait()
}

// If a goroutine is stopped between reading the clock and taking its run, the progress of others
// is not mistaken for a step of the clock.
func TestOrderAfterAStall(t *testing.T) {
	clock := &handClock{ms: someMillis}
	g := New(WithClock(clock))
	s := new(stock)
	g.look(s, 0)
	stale := s.reading
	first := g.high(s)
	clock.ms += 60_000 // a minute later
	g.look(s, 0)
	second := g.high(s)
	s.reading = stale
	s.drop()
	third := g.high(s)
	if second <= first || third <= second || g.counts.steps.Load() != 0 {
		t.Errorf("%d, %d, %d do not increase, or %d steps", first, second, third, g.counts.steps.Load())
	}
	// A real step is followed.
	clock.ms = someMillis
	g.look(s, 0)
	if got, want := g.high(s)>>sequenceBits, floorOf(someMillis)>>sequenceBits; got != want || g.counts.steps.Load() != 1 {
		t.Errorf("after a step back: ms %d, want %d; %d steps", got, want, g.counts.steps.Load())
	}
}

// While a goroutine reads the clock, others continue: their progress is not mistaken for a step of
// the clock.
func TestOrderWhileTheClockIsRead(t *testing.T) {
	clock := &movingClock{handClock: handClock{ms: someMillis}}
	g := New(WithClock(clock))
	mine, theirs := new(stock), new(stock)
	g.look(mine, 0)
	g.order.next.Store(floorOf(someMillis + 30_000)) // others are far ahead
	var during uint64
	clock.read = func() {
		clock.read = nil
		clock.ms += 60_000
		g.look(theirs, 0)
		during = g.high(theirs)
		clock.ms -= 60_000
	}
	after := g.high(mine)
	if after != floorOf(someMillis) || g.counts.steps.Load() != 1 || during <= after {
		t.Errorf("%d while %d, %d steps", after, during, g.counts.steps.Load())
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

func TestOrderIsNeverZero(t *testing.T) {
	o := new(order)
	for range 3 {
		if first, ok := o.take(traceid.EpochMillis, 1); first == 0 || !ok {
			t.Error(first, ok)
		}
	}
	if !o.follow(o.next.Add(10*holdWords), traceid.EpochMillis) || o.next.Load() != 1 {
		t.Errorf("after a step back to the epoch: %d", o.next.Load())
	}
}

// The order may be ahead of the clock by less than the hold.
func TestOrderIsAhead(t *testing.T) {
	o := new(order)
	floor := floorOf(someMillis)
	o.next.Store(floor + holdWords - 1)
	if first, ok := o.take(someMillis, 1); !ok || first != floor+holdWords-1 {
		t.Errorf("%d ahead, %v; want %d", first-floor, ok, holdWords-1)
	}
	if first, ok := o.take(someMillis, 1); ok {
		t.Errorf("%d ahead, which is the hold", first-floor)
	}
	for _, next := range []uint64{floor - 1, floor, floor + holdWords - 1} {
		o.next.Store(next)
		if o.follow(next, someMillis) {
			t.Errorf("being %d words ahead was taken for a step back", int64(next-floor))
		}
	}
	o.next.Store(floor + holdWords)
	if !o.follow(o.next.Load(), someMillis) || o.next.Load() != floor {
		t.Errorf("%d ahead, want 0: a step by the hold is a step of the clock", o.next.Load()-floor)
	}
}

// A used-up sequence overflows into the next millisecond.
func TestOrderCarries(t *testing.T) {
	o := new(order)
	o.next.Store(5<<sequenceBits | maxSequence)
	if got, ok := o.take(traceid.EpochMillis+5, 4); got != 5<<sequenceBits|maxSequence || !ok {
		t.Errorf("%x, %v", got, ok)
	}
	if got, ok := o.take(traceid.EpochMillis+5, 1); got != 6<<sequenceBits|3 || !ok {
		t.Errorf("%x, %v", got, ok)
	}
}

// No word is in two runs, even if many goroutines take runs at once.
func TestRunsAreDisjoint(t *testing.T) {
	const workers, each, n = 2, 1_000_000, 3
	o := new(order)
	var starts [workers][]uint64
	var wg sync.WaitGroup
	var ready atomic.Int64
	for w := range workers {
		starts[w] = make([]uint64, each)
		wg.Go(func() {
			for ready.Add(1); ready.Load() < workers; { // at the same time
				runtime.Gosched()
			}
			for i := range each {
				starts[w][i], _ = o.take(someMillis, n)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(starts[:]...)
	slices.Sort(all)
	for i, first := range all {
		if want := floorOf(someMillis) + uint64(i)*n; first != want {
			t.Fatalf("run %d begins at %d, want %d", i, first, want)
		}
	}
}

// The last millisecond of the layout starts again when its sequence is used up.
func TestOrderAtItsEnd(t *testing.T) {
	clock := &handClock{ms: traceid.EpochMillis + maxMillis}
	g, s := New(WithClock(clock)), new(stock)
	g.look(s, 0)
	g.order.next.Store(math.MaxUint64 - 10)
	s.made = longest
	for i := range 3 * longest {
		if high := g.high(s); high>>sequenceBits != maxMillis {
			t.Fatalf("call %d: %x", i, high)
		}
	}
	clock.ms++
	g.look(s, 0)
	if high := g.high(s); high != 0 || floorOf(clock.ms) != 0 || floorOf(traceid.EpochMillis-1) != 0 {
		t.Errorf("a millisecond later: %x", high)
	}
}

// Runs grow while a millisecond is busy, and start again in the next.
func TestRuns(t *testing.T) {
	o, s := new(order), new(stock)
	for _, ms := range []int64{traceid.EpochMillis + 10, traceid.EpochMillis + 11} {
		s.ms = ms
		s.drop()
		var got []uint64
		for range 11 {
			before := o.next.Load()
			s.run(o)
			got = append(got, s.last-s.word)
			if o.next.Load() != s.last || s.word < before {
				t.Errorf("run [%d, %d), next %d", s.word, s.last, o.next.Load())
			}
		}
		if want := []uint64{1, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128}; !slices.Equal(got, want) {
			t.Errorf("the runs have lengths %d, want %d", got, want)
		}
	}
}

// A step back by more than the source tolerates causes exactly one new secret, however many
// goroutines notice it.
func TestPrivateSourceTakesANewSecret(t *testing.T) {
	clock := &handClock{ms: someMillis}
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
		t.Error("a small step caused a new secret")
	}
	clock.ms -= 1100 // three seconds before the first, counted in whole ones
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
		t.Error("a large step caused no new secret")
	}
	fill()
	if p.generator.Load() != second {
		t.Error("a further secret without a further step")
	}
	clock.ms = 0
	if n, _, err := p.Fill(ids); n != 0 || err == nil || p.generator.Load() != second {
		t.Errorf("at 1970: %d, %v", n, err)
	}
}

// The zero-configuration source works from Randflake's first second to its last but one.
func TestPrivateSourceHasAllTime(t *testing.T) {
	for _, ms := range []int64{randflake.Epoch * 1000, randflake.EndOfLife*1000 - 1001} {
		clock := &handClock{ms: ms}
		if n, second, err := newPrivate(clock).Fill(make([]randflake.ID, 10)); n != 10 || second.Unix() != ms/1000 {
			t.Errorf("at %v: %d IDs of %v, %v", clock.Now().UTC(), n, second.UTC(), err)
		}
	}
}

// Every secret is random: no two are the same, and none is zero.
func TestSecretsAreDrawn(t *testing.T) {
	clock := &handClock{ms: someMillis}
	zero, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	none, err := randflake.NewGenerator(zero, everything, randflake.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	p := newPrivate(clock)
	seen := map[randflake.ID]bool{}
	for i, fill := range []func([]randflake.ID) (int, time.Time, error){none.Fill, newPrivate(clock).Fill, p.Fill} {
		ids := make([]randflake.ID, batchSize)
		if _, _, err := fill(ids); err != nil {
			t.Fatal(err)
		}
		if seen[ids[0]] {
			t.Errorf("source %d has a duplicate secret, or none", i)
		}
		seen[ids[0]] = true
	}
	p.renew()
	ids := make([]randflake.ID, batchSize)
	if _, _, err := p.Fill(ids); err != nil || seen[ids[0]] {
		t.Errorf("a renewed source kept its secret, or has none: %v", err)
	}
}

// Old records: a source that refuses causes no zero or duplicate low half, and the sequence stays
// within its bits.
func TestNewTraceIDAtItsLimits(t *testing.T) {
	clock := &handClock{ms: someMillis}
	s := &refusing{private: newPrivate(clock), refuse: true}
	g := New(WithClock(clock), WithSource(s))
	at := time.UnixMilli(someMillis).Add(-24 * time.Hour).UTC()
	lows := map[[8]byte]bool{{}: true}
	g.old.Store(maxSequence - 500)
	for i := range 1000 {
		id, err := g.NewTraceIDAt(at)
		if err != nil || lows[[8]byte(id[8:])] {
			t.Fatalf("ID %d: %s, %v: a zero or duplicate low half", i, id, err)
		}
		lows[[8]byte(id[8:])] = true
		if want := uint32(maxSequence-500+i+1) & maxSequence; !traceid.Time(id).Equal(at) || traceid.Sequence(id) != want {
			t.Fatalf("ID %d: %v, sequence %d; want %v, %d", i, traceid.Time(id), traceid.Sequence(id), at, want)
		}
	}
	if n := g.Fallbacks(); n != 1000 {
		t.Errorf("%d fallbacks", n)
	}
	if _, err := g.NewTraceIDAt(time.Unix(0, 0)); !errors.Is(err, traceid.ErrBeforeEpoch) {
		t.Error(err)
	}
	g.old.Store(maxSequence) // the next sequence is 0, and so is the number of the first millisecond
	id, err := g.NewTraceIDAt(time.UnixMilli(traceid.EpochMillis))
	if err != nil || [8]byte(id[:8]) != [8]byte{7: 1} {
		t.Errorf("the very first ID: %s, %v; want the lowest clear half that is not zero", id, err)
	}
}

// Only bits that are all zero are rejected.
func TestRandomIDIsNotZero(t *testing.T) {
	old := rand.Reader
	defer func() { rand.Reader = old }()
	rand.Reader = bytes.NewReader([]byte{15: 1})
	if id := randomID(); id != 1 {
		t.Errorf("%d, want 1", id)
	}
}

func TestCounterIsForTheSystemClock(t *testing.T) {
	ticks := counter{read: func() uint64 { return 7 }, slowest: 0.5e6, fastest: 10e6}
	for _, c := range []struct {
		name    string
		clock   randflake.Clock
		counter counter
		used    bool
	}{
		{"both", randflake.SystemClock, ticks, true},
		{"a clock of a test", &handClock{ms: someMillis}, ticks, false},
		{"no counter", randflake.SystemClock, counter{}, false},
	} {
		k := newClock(c.clock, c.counter)
		if used := k.counter.read() == 7; used != c.used || k.wrong.Load() == c.used {
			t.Errorf("%s: used %v, wrong %v", c.name, used, k.wrong.Load())
		}
	}
}
