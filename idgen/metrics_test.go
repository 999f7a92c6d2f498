package idgen

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
)

// Every series exists from the start. Refusals are counted by reason, and so are steps of the clock
// back. A source that borrows is ahead of the clock. A closed generator has no metrics; those of
// other generators remain. Close may be called again.
func TestMetrics(t *testing.T) {
	reportstest.Collect(t)
	reader := metric.NewManualReader()
	clock := newClock(noon)
	var leased Source = newSource(t, clock.Now)
	var refused error
	provider := WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	closed, g := New(provider), New(WithClock(clock.Now), provider,
		WithSource(sourceFunc(func(dst []randflake.ID) (int, time.Time, error) {
			if refused != nil {
				return 0, time.Time{}, refused
			}
			return leased.Fill(dst)
		})))
	for range 2 {
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
	}
	const fallbacks, steps = "traceflake.id.fallbacks {call} error.type=",
		"traceflake.id.clock_steps {step}"
	const borrowed = "traceflake.id.borrowed s"
	restores := "traceflake.id.restores {restore} traceflake.vmclock="
	source, _ := vmclock.System().Status()
	want := map[string]float64{steps: 0, borrowed: 0, restores + source.String(): 0}
	for _, reason := range []string{
		"no_lease", "before_epoch", "lease_not_started", "lease_expired", "clock_behind",
		"exhausted", "sealed", "end_of_life", "clock_out_of_range", "_OTHER",
	} {
		want[fallbacks+reason] = 0
	}
	check := func() {
		t.Helper()
		if got := metrictest.Collect(t, reader); !maps.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
	for range 1000 {
		idsOf(g)
	}
	check()

	clock.add(13 * time.Hour) // past the lease
	g.NewIDs(t.Context())
	spanOf(g)
	refused = errRefused
	spanOf(g)
	refused = fmt.Errorf("a keeper: %w", randflake.ErrNoLease)
	spanOf(g)
	refused = nil
	clock.add(-12 * time.Hour)
	g.NewIDs(t.Context())
	want[fallbacks+"lease_expired"] = 2
	want[fallbacks+"_OTHER"], want[fallbacks+"no_lease"], want[steps] = 1, 1, 1
	check()

	clock.add(time.Second) // half a second has passed in each
	leased = &tagged{clock: newClock(clock.time().Add(2 * time.Second)).Now}
	spanOf(g)
	want[borrowed] = 1.5
	check()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	want = nil
	check()
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
