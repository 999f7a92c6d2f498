package idgen

import (
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/vmclock"
)

type config struct {
	source  Source
	clock   clock
	after   func(d time.Duration, f func()) // calls f after d; nil: there are no timers
	machine *vmclock.Machine
	entropy func([]byte) // fills it with bytes that differ between copies
	meters  metric.MeterProvider
}

// Option configures a [Generator].
type Option func(*config)

// WithSource sets the source of low halves and span IDs: one with leased nodes, so that IDs are
// unique in the fleet. The default, and nil, is a random secret drawn by this process.
func WithSource(s Source) Option {
	return func(c *config) { c.source = s }
}

// WithMeterProvider sets the provider of the metrics, which docs/metrics.md describes; the default,
// and nil, is the global one.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return func(c *config) { c.meters = mp }
}

// WithClock sets the clock, for tests. It is read for every ID, and the zero-configuration source
// uses it too; a source given by WithSource has its own clock. With it all trace IDs are strictly
// ordered. The default, and nil, is the machine's clock.
func WithClock(now func() time.Time) Option {
	return func(c *config) {
		c.clock, c.after = clock{now: now}, nil
		if now == nil {
			c.clock = systemClock()
			c.after = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
		}
	}
}
