package idgen

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/version"
	"github.com/traceflake/traceflake/randflake"
)

const scope = "github.com/traceflake/traceflake/idgen"

// reasons maps refusals to values of the attribute error.type. Specific errors precede general
// ones; the last value stands for all others.
var reasons = [...]struct {
	err  error
	name string
}{
	{randflake.ErrNoLease, "no_lease"},
	{randflake.ErrBeforeEpoch, "before_epoch"},
	{randflake.ErrLeaseNotStarted, "lease_not_started"},
	{randflake.ErrLeaseExpired, "lease_expired"},
	{randflake.ErrClockBehind, "clock_behind"},
	{randflake.ErrExhausted, "exhausted"},
	{randflake.ErrSealed, "sealed"},
	{randflake.ErrEndOfLife, "end_of_life"},
	{errClock, "clock_out_of_range"},
	{nil, "_OTHER"},
}

// reason returns the index of err in reasons.
func reason(err error) int {
	for i, r := range reasons {
		if errors.Is(err, r.err) {
			return i
		}
	}
	return len(reasons) - 1
}

// register creates the instruments, which are only read on collection.
func (g *Generator) register(mp metric.MeterProvider) (err error) {
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	m := mp.Meter(scope, metric.WithInstrumentationVersion(version.Library()))
	fallbacks, err1 := m.Int64ObservableCounter("traceflake.id.fallbacks",
		metric.WithUnit("{call}"),
		metric.WithDescription("Calls served without the source, by reason."))
	steps, err2 := m.Int64ObservableCounter("traceflake.id.clock_steps", metric.WithUnit("{step}"),
		metric.WithDescription("Steps of the clock back by more than 2 s; "+
			"the order of trace IDs started again."))
	restores, err3 := m.Int64ObservableCounter("traceflake.id.restores",
		metric.WithUnit("{restore}"),
		metric.WithDescription("Restores of this machine from a snapshot, "+
			"by the mechanism that detects them, or off."))
	borrowed, err4 := m.Float64ObservableGauge("traceflake.id.borrowed", metric.WithUnit("s"),
		metric.WithDescription("How far the second of the newest batch was ahead of the clock."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	// All series exist from the start: a rate misses the first count of a series that begins with
	// it.
	g.metrics, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(steps, g.steps.Load())
		source, _ := g.eras.machine.Status()
		o.ObserveInt64(restores, g.eras.restores.Load(),
			metric.WithAttributes(attribute.String("traceflake.vmclock", source.String())))
		o.ObserveFloat64(borrowed, (time.Duration(g.borrowed.Load()) * time.Millisecond).Seconds())
		for i, r := range reasons {
			o.ObserveInt64(fallbacks, g.refusals.reasons[i].Load(),
				metric.WithAttributes(attribute.String("error.type", r.name)))
		}
		return nil
	}, fallbacks, steps, restores, borrowed)
	return err
}
