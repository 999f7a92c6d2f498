package lease

import (
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// Option configures a [Keeper].
type Option func(*config)

type config struct {
	ttl    time.Duration
	owner  string // shows operators who holds a block
	clock  func() reading
	meters metric.MeterProvider
	report func(error) // nil: otel.Handle
	// changes when this machine is restored from a snapshot
	machine func() uint64
}

// WithTTL sets how long a grant lasts, and thus how long IDs are generated while the store is
// unreachable. The block of a process that ended stays unused for as long. Copies of a machine that
// does not report restores generate the same IDs for about half a TTL, or for a whole one if the
// store is unavailable. A grant is renewed at half its TTL, which takes a directory some
// milliseconds and a server one or two round trips, so a TTL of a minute burdens neither. The range
// is [MinTTL] to [MaxTTL], the default [DefaultTTL].
func WithTTL(d time.Duration) Option {
	return func(c *config) { c.ttl = d }
}

// WithMeterProvider sets the provider of the metrics; the default, and nil, is the global one.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return func(c *config) {
		if mp != nil {
			c.meters = mp
		}
	}
}

// WithErrorHandler sets a function that is called when the store begins to fail, when it has
// recovered or has another history, and when a grant is dropped; the default, and nil, is
// [otel.Handle]. A lasting failure is reported once. Reports arrive one at a time and in their
// order, in a goroutine of their own: a handler that blocks delays only further reports. At most 16
// reports wait.
func WithErrorHandler(handle func(error)) Option {
	return func(c *config) { c.report = handle }
}

func newConfig(opts []Option) (config, error) {
	host, _ := os.Hostname() // "" if that fails
	c := config{ttl: DefaultTTL, owner: ownerOn(host), clock: systemClock,
		meters: otel.GetMeterProvider(), machine: vmclock.System().Generation}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	if c.ttl < MinTTL || c.ttl > MaxTTL {
		return c, fmt.Errorf("lease: TTL %s, want %s to %s", c.ttl, MinTTL, MaxTTL)
	}
	return c, nil
}

// reading is both clocks at one moment: the wall clock, and the time since some moment on a clock
// that is never stepped.
type reading struct {
	wall    time.Time
	elapsed time.Duration
}

func (r reading) offset() int64 { return r.wall.UnixNano() - int64(r.elapsed) }

// started is about when this process began.
var started = time.Now()

func systemClock() reading {
	now := time.Now()
	return reading{wall: now, elapsed: now.Sub(started)}
}
