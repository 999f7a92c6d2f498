package idgen

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/internal/version"
	"github.com/traceflake/traceflake/randflake"
)

// collected returns each metric's points by the values of their attributes.
func collected(t *testing.T, r metric.Reader) map[string]map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			points := map[string]float64{}
			out[m.Name+" "+m.Unit] = points
			if d, ok := m.Data.(metricdata.Gauge[float64]); ok {
				points[scope.Scope.Version] = d.DataPoints[0].Value
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				points[p.Attributes.Encoded(attribute.DefaultEncoder())] = float64(p.Value)
			}
		}
	}
	return out
}

// Every series exists from the start. Refusals are counted by reason, and so are steps of the clock
// back. A source that borrows is ahead of the clock. A closed generator has no metrics; those of
// other generators remain. Close may be called again.
func TestMetrics(t *testing.T) {
	reportstest.Collect(t)
	reader := metric.NewManualReader()
	clock := newClock(noon)
	source := &switched{Source: newSource(t, clock.Now)}
	provider := WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	closed, g := New(provider), New(WithClock(clock.Now), WithSource(source), provider)
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
	}
	want := map[string]float64{}
	for _, reason := range []string{
		"no_lease", "before_epoch", "lease_not_started", "lease_expired", "clock_behind",
		"exhausted", "sealed", "end_of_life", "clock_out_of_range", "_OTHER",
	} {
		want["error.type="+reason] = 0
	}
	check := func(steps, borrowed float64) {
		t.Helper()
		got := collected(t, reader)
		if fallbacks := got["traceflake.id.fallbacks {call}"]; !maps.Equal(fallbacks, want) {
			t.Errorf("fallbacks %v, want %v", fallbacks, want)
		}
		if n := got["traceflake.id.clock_steps {step}"][""]; n != steps {
			t.Errorf("%v clock steps, want %v", n, steps)
		}
		if s := got["traceflake.id.borrowed s"][version.Library()]; s != borrowed {
			t.Errorf("borrowed %v s, want %v", s, borrowed)
		}
	}
	for range 1000 {
		idsOf(g)
	}
	check(0, 0)

	clock.add(13 * time.Hour) // past the lease
	g.NewIDs(t.Context())
	spanOf(g)
	source.err = errRefused
	spanOf(g)
	source.err = fmt.Errorf("a keeper: %w", randflake.ErrNoLease)
	spanOf(g)
	source.err = nil
	clock.add(-12 * time.Hour)
	g.NewIDs(t.Context())
	want["error.type=lease_expired"] = 2
	want["error.type=_OTHER"], want["error.type=no_lease"] = 1, 1
	check(1, 0)

	clock.add(time.Second) // half a second has passed in each
	source.Source = &tagged{clock: newClock(clock.time().Add(2 * time.Second)).Now}
	spanOf(g)
	check(1, 1.5)
	if err := g.Close(); err != nil || len(collected(t, reader)) != 0 {
		t.Errorf("after Close: %v, %v", err, collected(t, reader))
	}
}

// An error of the meter is reported, and the generator works without metrics.
func TestMeterRefuses(t *testing.T) {
	errs := reportstest.Collect(t)
	// a gauge has none
	sums := metric.NewView(metric.Instrument{Name: "*"},
		metric.Stream{Aggregation: metric.AggregationSum{}})
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()),
		metric.WithView(sums))
	g := New(WithClock(newClock(noon).Now), WithMeterProvider(provider))
	id, span := g.NewIDs(t.Context())
	if got := errs(); len(got) != 1 || !strings.Contains(got[0].Error(), "idgen: metrics: ") ||
		!id.IsValid() || !span.IsValid() || g.Close() != nil {
		t.Errorf("%s, %s; reported %v", id, span, got)
	}
}
