package idgen

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// generators returns the two kinds of generators, for tests of what holds for both.
func generators(t testing.TB, clock *fakeClock) map[string]*Generator {
	return map[string]*Generator{
		"zero configuration": New(WithClock(clock)),
		"leased":             New(WithClock(clock), WithSource(newSource(t, clock))),
	}
}

// checker checks each ID of a generator against the generator's guarantees.
type checker struct {
	t    testing.TB
	g    *Generator
	last trace.TraceID
	lows map[uint64]bool
	// moves means that the goroutine may move between processors, each of which has its own run of
	// the millisecond's sequence. With a test's clock, runs have length one.
	moves bool
}

func newChecker(t testing.TB, g *Generator) *checker {
	return &checker{t: t, g: g, lows: map[uint64]bool{}}
}

func (c *checker) trace() trace.TraceID {
	c.t.Helper()
	id, span := c.g.NewIDs(context.Background())
	if bytes.Compare(id[:], c.last[:]) <= 0 && (!c.moves || traceid.Time(c.last).Sub(traceid.Time(id)) > time.Millisecond) {
		c.t.Fatalf("%s (%v) comes after %s (%v)", id, traceid.Time(id), c.last, traceid.Time(c.last))
	}
	c.last = id
	c.unique(id[8:])
	c.unique(span[:])
	return id
}

func (c *checker) span() {
	c.t.Helper()
	id := c.g.NewSpanID(context.Background(), c.last)
	c.unique(id[:])
}

// unique checks low halves and span IDs together.
func (c *checker) unique(b []byte) {
	c.t.Helper()
	var n uint64
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	if n == 0 || c.lows[n] {
		c.t.Fatalf("%016x is zero or a duplicate", n)
	}
	c.lows[n] = true
}

// The SDK uses the generator's IDs for roots and children.
func TestThroughTracerProvider(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	g := New(WithClock(newClock(noon)), WithSource(&tagged{clock: newClock(noon)})) // numbers its IDs
	tracer := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(g), sdktrace.WithSpanProcessor(spans)).Tracer("test")
	ctx, root := tracer.Start(t.Context(), "root")
	_, child := tracer.Start(ctx, "child")
	child.End()
	root.End()
	for i, s := range spans.Ended() {
		id, span := s.SpanContext().TraceID(), s.SpanContext().SpanID()
		if !traceid.Time(id).Equal(noon) || idOf(id[8:]) != 1 || idOf(span[:]) != randflake.ID(3-i) {
			t.Errorf("span %d: %s, %s", i, id, span)
		}
	}
}

// Many IDs in one millisecond, then some in the next: time and sequence reflect that.
func TestSequenceWithinAMillisecond(t *testing.T) {
	for name, g := range generators(t, newClock(noon)) {
		t.Run(name, func(t *testing.T) {
			c := newChecker(t, g)
			first := traceid.Sequence(c.trace())
			for i := uint32(1); i < 20_000; i++ {
				id := c.trace()
				if !traceid.Time(id).Equal(noon) || traceid.Sequence(id) != first+i {
					t.Fatalf("ID %d: %v, sequence %d", i, traceid.Time(id), traceid.Sequence(id))
				}
			}
		})
	}
	clock := newClock(noon)
	g := New(WithClock(clock))
	for i := range 100 {
		id, _ := g.NewIDs(t.Context())
		if !traceid.Time(id).Equal(noon.Add(time.Duration(i)*time.Millisecond)) || traceid.Sequence(id) > 1 {
			t.Fatalf("millisecond %d: %v, sequence %d", i, traceid.Time(id), traceid.Sequence(id))
		}
		clock.add(time.Millisecond)
	}
}

// A step back by less than 2 s is held; after a larger one the clear half
// follows the clock, and IDs stay unique.
func TestClockStepsBack(t *testing.T) {
	for _, tt := range []struct {
		step time.Duration
		held bool
	}{
		{time.Millisecond, true},
		{500 * time.Millisecond, true},
		{1999 * time.Millisecond, true},
		{2001 * time.Millisecond, false},
		{5 * time.Second, false},
		{time.Hour, false},
		{600 * 24 * time.Hour, false}, // a clock that was wrong at boot, before Randflake's epoch
	} {
		errs := collectErrors(t)
		clock := newClock(noon)
		c := newChecker(t, New(WithClock(clock)))
		for range 1000 {
			c.trace()
			c.span()
		}
		clock.add(-tt.step)
		now := clock.time()
		if !tt.held {
			c.last = trace.TraceID{}
		}
		for range 1000 {
			id := c.trace()
			c.span()
			if got := traceid.Time(id); tt.held && !got.Equal(noon) || !tt.held && !got.Equal(now.UTC().Truncate(time.Millisecond)) {
				t.Fatalf("back by %v: the ID's time is %v", tt.step, got)
			}
		}
		clock.set(noon.Add(time.Minute))
		for range 1000 {
			if id := c.trace(); !traceid.Time(id).Equal(noon.Add(time.Minute)) {
				t.Fatalf("forward again: the ID's time is %v", traceid.Time(id))
			}
		}
		if n := c.g.Fallbacks(); now.Unix() >= randflake.Epoch && (n != 0 || len(errs.all()) != 0) {
			t.Errorf("back by %v: %d fallbacks, %v", tt.step, n, errs.all())
		}
	}
}

// For any walk of the clock within the hold, IDs increase, none repeats, and both halves of each
// ID agree.
func TestRandomClockWalks(t *testing.T) {
	codec := newCodec(t, fleetSecret)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		clock := newClock(noon)
		c := newChecker(t, New(WithClock(clock), WithSource(newSource(t, clock))))
		verifier := traceid.NewVerifier(randflake.NewKeyring(codec), traceid.WithClock(clock))
		highest := clock.time()
		for range 300 {
			switch r.IntN(4) {
			case 0:
				clock.add(time.Duration(r.IntN(1500)) * time.Millisecond)
			case 1:
				if back := time.Duration(r.IntN(1500)) * time.Millisecond; highest.Sub(clock.time().Add(-back)) < 1990*time.Millisecond {
					clock.add(-back)
				}
			case 2:
				for range r.IntN(600) {
					c.span()
				}
			}
			if now := clock.time(); now.After(highest) {
				highest = now
			}
			if id := c.trace(); !verifier.Verify(id) {
				t.Fatalf("seed %d: not verified at %v: %+v", seed, clock.time(), traceid.Inspect(randflake.NewKeyring(codec), id))
			}
		}
		if n := c.g.Fallbacks(); n != 0 {
			t.Errorf("seed %d: %d fallbacks", seed, n)
		}
	}
}

// Each goroutine sees trace IDs in the documented order, and no two goroutines get the same ID.
func TestConcurrentUse(t *testing.T) {
	clock := newClock(noon)
	both := generators(t, clock)
	both["system clock"] = New()
	for name, g := range both {
		t.Run(name, func(t *testing.T) {
			workers := 4 * runtime.GOMAXPROCS(0)
			checkers := make([]*checker, workers)
			highs := make([]map[string]bool, workers)
			var wg sync.WaitGroup
			for w := range workers {
				checkers[w], highs[w] = newChecker(t, g), map[string]bool{}
				checkers[w].moves = name == "system clock"
				wg.Go(func() {
					for range 3000 {
						id := checkers[w].trace()
						highs[w][string(id[:8])] = true
						checkers[w].span()
						checkers[w].span()
					}
				})
			}
			for range 100 { // forward, and back within the hold
				clock.add(7 * time.Millisecond)
				clock.add(-4 * time.Millisecond)
				runtime.Gosched()
			}
			wg.Wait()
			all, high := map[uint64]bool{}, map[string]bool{}
			for w := range workers {
				for n := range checkers[w].lows {
					if all[n] {
						t.Fatalf("two goroutines got %016x", n)
					}
					all[n] = true
				}
				for h := range highs[w] {
					if high[h] {
						t.Fatalf("two goroutines got the clear half %x", h)
					}
					high[h] = true
				}
			}
			if want := workers * 3000 * 4; len(all) != want {
				t.Errorf("%d IDs, want %d", len(all), want)
			}
		})
	}
}

// refused is a source that always refuses.
type refused struct{}

func (refused) Fill([]randflake.ID) (int, time.Time, error) {
	return 0, time.Time{}, randflake.ErrExhausted
}

// Neither IDs nor batches nor fallbacks allocate.
func TestNoAllocations(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop batches")
	}
	collectErrors(t)
	clock := newClock(noon)
	for name, g := range map[string]*Generator{
		"private":                   New(),
		"leased":                    New(WithSource(newSource(t, clock)), WithClock(clock)),
		"reads the clock each time": New(WithClock(clock)),
		"refused":                   New(WithSource(refused{})),
	} {
		t.Run(name, func(t *testing.T) {
			const calls = 100_000
			var before, after runtime.MemStats
			g.NewIDs(t.Context())
			runtime.ReadMemStats(&before)
			for range calls {
				g.NewIDs(context.Background())
				g.NewSpanID(context.Background(), trace.TraceID{})
			}
			runtime.ReadMemStats(&after)
			// The runtime and the test make a few allocations themselves.
			if n := after.Mallocs - before.Mallocs; n > calls/1000 {
				t.Errorf("%d allocations in %d calls", n, 2*calls)
			}
		})
	}
}
