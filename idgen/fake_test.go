package idgen

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
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
func noCounter(cfg *config) { cfg.gate = 0 }

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
	away := g.unused()
	return func() {
		here := g.detach(g.here(procPin()))
		g.attach(away, true)
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

func newCodec(t testing.TB, secret string) *randflake.Codec {
	t.Helper()
	c, err := randflake.NewCodec([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const fleetSecret = "the fleet secret"

// newSource returns a leased generator: eight nodes for a day around noon.
func newSource(t testing.TB, now func() time.Time) *randflake.Generator {
	t.Helper()
	g, err := randflake.NewGenerator(newCodec(t, fleetSecret),
		randflake.Lease{Node: 64, Nodes: 8, Start: noon.Add(-12 * time.Hour),
			End: noon.Add(12 * time.Hour)},
		randflake.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// switched is a source that refuses while err is set.
type switched struct {
	Source
	err error
}

var errRefused = errors.New("refused for a test")

func (s *switched) Fill(dst []randflake.ID) (int, time.Time, error) {
	if s.err != nil {
		return 0, time.Time{}, s.err
	}
	return s.Source.Fill(dst)
}

// sourceFunc is a source, perhaps one that breaks the contract.
type sourceFunc func(dst []randflake.ID) (int, time.Time, error)

func (f sourceFunc) Fill(dst []randflake.ID) (int, time.Time, error) { return f(dst) }

// tagged is a source whose IDs are numbered; the upper half is its generation. Tests set the
// functions.
type tagged struct {
	clock      func() time.Time
	generation atomic.Uint64
	n          atomic.Uint64
	fills      atomic.Int64
	filled     func() // called after each Fill
	restored   func() // called before the generation changes
	asked      func() // called before the generation is returned
}

func (s *tagged) Generation() uint64 {
	if s.asked != nil {
		s.asked()
	}
	return s.generation.Load()
}

func (s *tagged) OnRestore() {
	s.restored()
	s.generation.Add(1)
}

func (s *tagged) Fill(dst []randflake.ID) (int, time.Time, error) {
	generation, now := s.generation.Load(), s.clock()
	for i := range dst {
		dst[i] = randflake.ID(generation<<32 | s.n.Add(1))
	}
	s.fills.Add(1)
	if s.filled != nil {
		s.filled()
	}
	return len(dst), now.Truncate(time.Second), nil
}

// collectErrors returns a function that returns the errors passed to otel.Handle so far, once all
// of them have arrived. OpenTelemetry has one handler per process, so such tests do not run in
// parallel.
func collectErrors(t *testing.T) (all func() []error) {
	var mu sync.Mutex
	var errs []error
	old, goroutines := otel.GetErrorHandler(), runtime.NumGoroutine()
	delivered := func() { // reports are delivered by goroutines that end
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines; {
			if runtime.Gosched(); time.Now().After(end) {
				t.Fatal("a report was not delivered")
			}
		}
	}
	t.Cleanup(func() { delivered(); otel.SetErrorHandler(old) })
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}))
	return func() []error {
		delivered()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}

// raceEnabled reports whether the race detector is on.
var raceEnabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
