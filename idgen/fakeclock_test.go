package idgen

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// noon is a time at which everything works.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC)

// fakeClock is a wall clock, a monotonic clock and timers, which tests move by hand.
type fakeClock struct {
	mu     sync.Mutex
	wall   time.Time
	mono   time.Duration
	timers []timer
	reads  int    // of the wall clock
	hook   func() // called when a clock is read, once the result is known
}

type timer struct {
	at   time.Duration // on the monotonic clock
	call func()
}

func newClock(t time.Time) *fakeClock { return &fakeClock{wall: t} }

// pass lets time pass, and then runs the timers that are due.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
	var due []timer
	c.timers = slices.DeleteFunc(c.timers, func(t timer) bool {
		if t.at > c.mono {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		t.call()
	}
}

func (c *fakeClock) after(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, timer{c.mono + d, f})
}

// add and set step the wall clock, and nothing else.
func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

func (c *fakeClock) set(t time.Time) { c.add(t.Sub(c.time())) }

// time is the wall clock's time. A reading of it, unlike one by Now, is not counted.
func (c *fakeClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	c.reads++
	now, hook := c.wall, c.hook
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return now
}

func (c *fakeClock) elapsed() time.Duration {
	c.mu.Lock()
	now, hook := c.mono, c.hook
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return now
}

// generator returns a generator that uses the fake clocks as it uses the machine's, without a
// counter.
func (c *fakeClock) generator(opts ...Option) *Generator {
	return New(append([]Option{WithSource(newPrivate(c.time, entropy.Read)), func(cfg *config) {
		cfg.clock, cfg.after = clock{now: c.Now, elapsed: c.elapsed}, c.after
	}}, opts...)...)
}

// noCounter makes a generator read the monotonic clock for each trace ID.
func noCounter(cfg *config) { cfg.clock.gate = 0 }

// late returns how far the next ID's time is behind c's.
func (c *fakeClock) late(t *testing.T, g *Generator) time.Duration {
	t.Helper()
	id, _ := g.NewIDs(t.Context())
	return c.time().Truncate(time.Millisecond).Sub(traceid.Time(id))
}

// both returns a generator that has IDs ready, here and on another processor.
func (c *fakeClock) both(t *testing.T, opts ...Option) (g *Generator, other func()) {
	t.Helper()
	g = c.generator(opts...)
	other = onOne(t, g)
	for range 2 {
		c.late(t, g)
		other()
	}
	return g, other
}

// onOne keeps the test on one processor. The function that it returns simulates, for the
// generator, a move to another processor or back.
func onOne(t *testing.T, g *Generator) (other func()) {
	old := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	away := &batch{size: minBatch}
	return func() {
		here := g.detach(procPin())
		g.attach(away)
		away = here
	}
}

func half(id trace.TraceID) uint64 { return binary.BigEndian.Uint64(id[:8]) }

func idOf(b []byte) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(b)) }

// spanOf returns g's next span ID.
func spanOf(g *Generator) randflake.ID {
	id := g.NewSpanID(context.Background(), trace.TraceID{})
	return idOf(id[:])
}

// idsOf returns g's next trace ID and the Randflake IDs in it and in its span ID.
func idsOf(g *Generator) (id trace.TraceID, low, span randflake.ID) {
	id, s := g.NewIDs(context.Background())
	return id, idOf(id[8:]), idOf(s[:])
}
