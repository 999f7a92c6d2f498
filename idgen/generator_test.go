package idgen

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
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
		"leased":       New(WithClock(clock.Now), WithSource(newSource(t, clock.Now))),
		"system clock": New(),
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
				}
			})
		}
		for range 100 { // forward, and back within the hold
			clock.add(7 * time.Millisecond)
			clock.add(-4 * time.Millisecond)
			runtime.Gosched()
		}
		wg.Wait()
		lows, highs := map[randflake.ID]bool{}, map[uint64]bool{}
		for _, c := range checkers {
			maps.Copy(lows, c.lows)
			for _, high := range c.highs {
				highs[high] = true
			}
		}
		if want := len(checkers) * each; len(highs) != want || len(lows) != 3*want {
			t.Errorf("%s: %d clear halves and %d IDs differ, want %d and %d", name, len(highs),
				len(lows), want, 3*want)
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
	at := func(want time.Time, sequence uint32) {
		t.Helper()
		id, err := g.NewTraceIDAt(want)
		info := traceid.Inspect(keyring, id)
		if err != nil || !info.Time.Equal(want.Truncate(time.Millisecond)) ||
			info.Sequence != sequence || info.Agree || info.Parts.Node&^7 != 64 ||
			!info.Parts.Time.Equal(noon.Truncate(time.Second)) {
			t.Errorf("at %v: %v, %+v", want, err, info)
		}
	}
	live, _ := g.NewIDs(t.Context())
	old := time.Date(2021, 5, 6, 7, 8, 9, 123_456_789, time.UTC)
	for i, t := range []time.Time{epoch, old, old, noon.Add(time.Hour), last} {
		at(t, uint32(i+1))
	}
	g.backfilled.Store(layout.MaxSequence - 1)
	for _, sequence := range []uint32{layout.MaxSequence, 1, 2} { // it starts again
		at(old, sequence)
	}
	if next, _ := g.NewIDs(t.Context()); half(next) != half(live)+1 {
		t.Errorf("live IDs are affected: %s after %s", next, live)
	}
	for _, at := range []time.Time{epoch.Add(-1), last.Add(time.Millisecond)} {
		if id, err := g.NewTraceIDAt(at); !errors.Is(err, traceid.ErrOutOfRange) || id.IsValid() {
			t.Errorf("at %v: %s, %v", at, id, err)
		}
	}
}
