package idgen

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// checker checks each ID of a generator against the generator's guarantees.
type checker struct {
	t     testing.TB
	g     *Generator
	last  trace.TraceID
	lows  map[randflake.ID]bool // low halves and span IDs
	highs []uint64
	// moves means that the goroutine may move between processors, each of which has its own run of
	// the millisecond's sequence. With a test's clock, runs have length one.
	moves bool
}

func newChecker(t testing.TB, g *Generator) *checker {
	return &checker{t: t, g: g, lows: map[randflake.ID]bool{}}
}

func (c *checker) trace() trace.TraceID {
	c.t.Helper()
	id, low, span := idsOf(c.g)
	if bytes.Compare(id[:], c.last[:]) <= 0 && (!c.moves || traceid.Time(c.last).Sub(traceid.Time(id)) > time.Millisecond) {
		c.t.Fatalf("%s (%v) comes after %s (%v)", id, traceid.Time(id), c.last, traceid.Time(c.last))
	}
	c.last, c.highs = id, append(c.highs, half(id))
	c.unique(low)
	c.unique(span)
	return id
}

func (c *checker) span() {
	c.t.Helper()
	c.unique(spanOf(c.g))
}

func (c *checker) unique(id randflake.ID) {
	c.t.Helper()
	if id == 0 || c.lows[id] {
		c.t.Fatalf("%016x is zero or a duplicate", uint64(id))
	}
	c.lows[id] = true
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

// Each goroutine sees trace IDs in the documented order, and no two goroutines get the same ID or
// clear half.
func TestConcurrentUse(t *testing.T) {
	clock := newClock(noon)
	for name, g := range map[string]*Generator{
		"zero configuration": New(WithClock(clock)),
		"leased":             New(WithClock(clock), WithSource(newSource(t, clock))),
		"system clock":       New(),
	} {
		t.Run(name, func(t *testing.T) {
			const each = 3000
			checkers := make([]*checker, 4*runtime.GOMAXPROCS(0))
			var wg sync.WaitGroup
			for w := range checkers {
				c := newChecker(t, g)
				checkers[w], c.moves = c, name == "system clock"
				wg.Go(func() {
					for range each {
						c.trace()
						c.span()
						c.span()
					}
				})
			}
			for range 100 { // forward, and back within the hold
				clock.add(7 * time.Millisecond)
				clock.add(-4 * time.Millisecond)
				runtime.Gosched()
			}
			wg.Wait()
			lows := map[randflake.ID]bool{}
			var highs []uint64
			for _, c := range checkers {
				for id := range c.lows {
					lows[id] = true
				}
				highs = append(highs, c.highs...)
			}
			slices.Sort(highs)
			if n, want := len(slices.Compact(highs)), len(checkers)*each; n != want || len(lows) != 4*want {
				t.Errorf("%d clear halves and %d IDs differ, want %d and %d", n, len(lows), want, 4*want)
			}
		})
	}
}

// refusing is a source that always refuses.
var refusing = sourceFunc(func([]randflake.ID) (int, time.Time, error) { return 0, time.Time{}, randflake.ErrExhausted })

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
		"refused":                   New(WithSource(refusing)),
	} {
		if n := testing.AllocsPerRun(100, func() {
			for range 1000 { // the runtime allocates now and then
				g.NewIDs(context.Background())
				g.NewSpanID(context.Background(), trace.TraceID{})
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations in 2000 calls", name, n)
		}
	}
}
