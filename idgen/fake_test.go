package idgen_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
)

// noon is a time at which everything works.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC)

// fakeClock is a clock that tests move by hand, both ways.
type fakeClock struct{ nanos atomic.Int64 }

func newClock(t time.Time) *fakeClock {
	c := &fakeClock{}
	c.set(t)
	return c
}

func (c *fakeClock) set(t time.Time)     { c.nanos.Store(t.UnixNano()) }
func (c *fakeClock) add(d time.Duration) { c.nanos.Add(int64(d)) }
func (c *fakeClock) Now() time.Time      { return time.Unix(0, c.nanos.Load()) }

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
func newSource(t testing.TB, clock *fakeClock) *randflake.Generator {
	t.Helper()
	g, err := randflake.NewGenerator(newCodec(t, fleetSecret),
		randflake.Lease{Node: 64, Nodes: 8, Start: noon.Add(-12 * time.Hour), End: noon.Add(12 * time.Hour)},
		randflake.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// switched is a source that can be made to refuse.
type switched struct {
	idgen.Source
	refuse    atomic.Bool
	leaseless atomic.Bool
	calls     atomic.Int64
}

var errRefused = errors.New("refused for a test")

func (s *switched) Fill(dst []randflake.ID) (int, time.Time, error) {
	s.calls.Add(1)
	if s.refuse.Load() {
		return 0, time.Time{}, errRefused
	}
	if s.leaseless.Load() {
		return 0, time.Time{}, fmt.Errorf("a keeper: %w", randflake.ErrNoLease)
	}
	return s.Source.Fill(dst)
}

// handled collects the errors passed to otel.Handle until the test ends. OpenTelemetry has one
// handler per process, so such tests do not run in parallel.
type handled struct {
	mu   sync.Mutex
	errs []error
}

func collectErrors(t *testing.T) *handled {
	h := &handled{}
	old := otel.GetErrorHandler()
	otel.SetErrorHandler(h)
	t.Cleanup(func() { otel.SetErrorHandler(old) })
	return h
}

func (h *handled) Handle(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

func (h *handled) all() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]error(nil), h.errs...)
}
