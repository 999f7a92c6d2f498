package idgen

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
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
	// moves means that the goroutine may move between processors, and each has its own run of the
	// millisecond's sequence. With a test's clock, runs have length one.
	moves bool
}

func newChecker(t testing.TB, g *Generator) *checker {
	return &checker{t: t, g: g, lows: map[randflake.ID]bool{}}
}

func (c *checker) trace() trace.TraceID {
	c.t.Helper()
	id, low, span := idsOf(c.g)
	back := traceid.Time(c.last).Sub(traceid.Time(id))
	if bytes.Compare(id[:], c.last[:]) <= 0 && (!c.moves || back > time.Millisecond) {
		c.t.Fatalf("%s (%v) comes after %s (%v)", id, traceid.Time(id), c.last,
			traceid.Time(c.last))
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

// Each goroutine sees trace IDs in the documented order, and no two goroutines get the same ID or
// clear half.
func TestConcurrentUse(t *testing.T) {
	clock := newClock(noon)
	for name, g := range map[string]*Generator{
		"zero configuration": New(WithClock(clock.Now)),
		"leased":             New(WithClock(clock.Now), WithSource(newSource(t, clock.Now))),
		"system clock":       New(),
	} {
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
			maps.Copy(lows, c.lows)
			highs = append(highs, c.highs...)
		}
		slices.Sort(highs)
		if n, want := len(slices.Compact(highs)), len(checkers)*each; n != want ||
			len(lows) != 4*want {
			t.Errorf("%s: %d clear halves and %d IDs differ, want %d and %d", name, n, len(lows),
				want, 4*want)
		}
	}
}

// refusing is a source that always refuses.
var refusing = sourceFunc(func([]randflake.ID) (int, time.Time, error) {
	return 0, time.Time{}, randflake.ErrExhausted
})

// Neither IDs nor batches nor fallbacks allocate.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool drop batches")
	}
	reportstest.Collect(t)
	clock := newClock(noon)
	for name, g := range map[string]*Generator{
		"private":                   New(),
		"leased":                    New(WithSource(newSource(t, clock.Now)), WithClock(clock.Now)),
		"reads the clock each time": New(WithClock(clock.Now)),
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

// The first and the last time that a trace ID can encode.
var (
	epoch = time.UnixMilli(layout.EpochMillis).UTC()
	last  = time.UnixMilli(layout.EpochMillis + layout.MaxMillis).UTC()
)

func TestNewTraceIDAt(t *testing.T) {
	clock := newClock(noon)
	g := New(WithSource(newSource(t, clock.Now)), WithClock(clock.Now))
	keyring := randflake.NewKeyring(newCodec(t, fleetSecret))
	verifier := traceid.NewVerifier(keyring, traceid.WithClock(clock.Now),
		traceid.WithMaxAge(100*365*24*time.Hour))
	live, _ := g.NewIDs(t.Context())
	for _, at := range []time.Time{
		epoch, epoch.Add(time.Millisecond), time.Date(2021, 5, 6, 7, 8, 9, 123_456_789, time.UTC),
		noon.Add(-time.Hour), noon.Add(time.Hour), last,
	} {
		var before trace.TraceID
		for range 1000 {
			id, err := g.NewTraceIDAt(at)
			if err != nil || !id.IsValid() || bytes.Compare(id[:], before[:]) <= 0 ||
				!traceid.Time(id).Equal(at.Truncate(time.Millisecond)) {
				t.Fatalf("at %v: %s of %v after %s, %v", at, id, traceid.Time(id), before, err)
			}
			before = id
			info := traceid.Inspect(keyring, id)
			if info.Agree || info.Parts.Time.Before(noon.Add(-time.Second)) ||
				info.Parts.Node&^7 != 64 ||
				verifier.Verify(id) {
				t.Fatalf("at %v: %+v, verified: %v", at, info, verifier.Verify(id))
			}
		}
	}
	// the sequence starts again, in the same millisecond
	g.backfilled.Store(layout.MaxSequence - 1)
	for _, want := range []uint32{layout.MaxSequence, 1, 2} {
		if id, err := g.NewTraceIDAt(noon); err != nil || !traceid.Time(id).Equal(noon) ||
			traceid.Inspect(nil, id).Sequence != want {
			t.Errorf("%s, %v: sequence %d of %v, want %d", id, err,
				traceid.Inspect(nil, id).Sequence, traceid.Time(id), want)
		}
	}
	g.backfilled.Store(layout.MaxSequence)
	if id, err := g.NewTraceIDAt(epoch); err != nil || half(id) != 1 {
		t.Errorf("%s, %v: the clear half is %d, want 1", id, err, half(id))
	}
	if next, _ := g.NewIDs(t.Context()); bytes.Compare(next[:], live[:]) <= 0 ||
		!traceid.Time(next).Equal(noon) {
		t.Errorf("live IDs are affected: %s after %s", next, live)
	}
	for at, want := range map[time.Time]error{
		epoch.Add(-1): traceid.ErrOutOfRange, last.Add(time.Millisecond): traceid.ErrOutOfRange,
	} {
		if id, err := g.NewTraceIDAt(at); !errors.Is(err, want) || id.IsValid() {
			t.Errorf("at %v: %s, %v; want %v", at, id, err, want)
		}
	}
}
