package idgen

import (
	"bytes"
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
	"unsafe"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// noon is a time at which everything works.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC)

// fakeClock is a wall clock, a monotonic clock and a counter, which tests move by hand.
type fakeClock struct {
	mu    sync.Mutex
	wall  time.Time
	mono  time.Duration
	ticks float64
	rate  float64 // of the counter, in ticks a nanosecond
	reads int     // of the clock
	// called when the clock or the counter is read, once the result is known
	hook, counted func()
}

func newClock(t time.Time) *fakeClock { return &fakeClock{wall: t, ticks: 1e15, rate: 2.5} }

// pass lets time pass.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono, c.ticks = c.wall.Add(d), c.mono+d, c.ticks+c.rate*float64(d)
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

func (c *fakeClock) count() uint64 {
	c.mu.Lock()
	n, hook := uint64(c.ticks), c.counted
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return n
}

// Now returns a time with a monotonic part, in package time's own encoding: package time has no
// function for a wall clock that is stepped.
func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	c.reads++
	t, hook := c.wall, c.hook
	if year := t.Year(); year > 1885 && year < 2150 {
		now := monotonic.Add(c.mono)
		seconds := t.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		*(*uint64)(unsafe.Pointer(&now)) = 1<<63 | uint64(seconds)<<30 | uint64(t.Nanosecond())
		t = now
	}
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return t
}

var monotonic = time.Now()

// counting returns a generator that trusts the fake clock's counter, as it trusts the system's.
func (c *fakeClock) counting(opts ...Option) *Generator {
	return New(append([]Option{WithSource(newPrivate(c.time, entropy.Read)), func(cfg *config) {
		cfg.now, cfg.counter, cfg.timed = c.Now, counter{read: c.count, slowest: 0.5e6, fastest: 10e6}, true
	}}, opts...)...)
}

// noCounter makes a generator read the clock.
func noCounter(cfg *config) { cfg.counter = counter{} }

// late returns how far the next ID's time is behind c's.
func (c *fakeClock) late(t *testing.T, g *Generator) time.Duration {
	t.Helper()
	id, _ := g.NewIDs(t.Context())
	return c.time().Truncate(time.Millisecond).Sub(traceid.Time(id))
}

// learned returns a counting generator that has measured the counter's rate and has IDs ready,
// here and on another processor.
func (c *fakeClock) learned(t *testing.T, opts ...Option) (g *Generator, other func()) {
	t.Helper()
	g = c.counting(opts...)
	other = onOne(t, g)
	for range 2 {
		for range 2 {
			c.late(t, g)
			c.pass(trusted * time.Millisecond)
		}
		c.late(t, g)
		other()
	}
	if g.clock.rate.Load() == 0 || g.clock.wrong.Load() {
		t.Fatal("the counter is not used")
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
		randflake.Lease{Node: 64, Nodes: 8, Start: noon.Add(-12 * time.Hour), End: noon.Add(12 * time.Hour)},
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

// tagged is a source whose IDs are numbered; the upper half is its generation. Tests set the functions.
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

// collectErrors returns a function that returns the errors passed to otel.Handle so far, once all of
// them have arrived. OpenTelemetry has one handler per process, so such tests do not run in parallel.
func collectErrors(t *testing.T) (all func() []error) {
	var mu sync.Mutex
	var errs []error
	old := otel.GetErrorHandler()
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

// delivered waits until no report is on its way.
func delivered() {
	stacks := make([]byte, 1<<20)
	for bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("reports.(*Queue).")) {
		runtime.Gosched()
	}
}

// raceEnabled reports whether the race detector is on.
var raceEnabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
