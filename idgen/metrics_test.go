package idgen

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

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
	put := func(name, unit string, attrs attribute.Set, value float64) {
		if out[name+" "+unit] == nil {
			out[name+" "+unit] = map[string]float64{}
		}
		out[name+" "+unit][attrs.Encoded(attribute.DefaultEncoder())] = value
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				if scope.Scope.Version == "" {
					t.Errorf("the scope of %s has no version", m.Name)
				}
				if !d.IsMonotonic {
					t.Errorf("%s is not monotonic", m.Name)
				}
				for _, p := range d.DataPoints {
					put(m.Name, m.Unit, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					put(m.Name, m.Unit, p.Attributes, p.Value)
				}
			default:
				t.Errorf("%s has data of %T", m.Name, d)
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	collectErrors(t)
	reader := metric.NewManualReader()
	clock := newClock(noon)
	source := &switched{Source: newSource(t, clock)}
	g := New(WithClock(clock), WithSource(source),
		WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	const each = 10_000
	for range each {
		g.NewIDs(t.Context())
		g.NewSpanID(t.Context(), trace.TraceID{})
		g.NewSpanID(t.Context(), trace.TraceID{})
		if _, err := g.NewTraceIDAt(noon); err != nil {
			t.Fatal(err)
		}
	}
	got := collected(t, reader)
	reasons := []string{"no_lease", "before_epoch", "lease_not_started", "lease_expired", "clock_behind",
		"exhausted", "sealed", "end_of_life", "clock_out_of_range", "_OTHER"}
	for _, reason := range reasons { // all exist from the start
		if n, ok := got["traceflake.id.fallbacks {call}"]["error.type="+reason]; !ok || n != 0 {
			t.Errorf("healthy, but %v fallbacks for %s, %t", n, reason, ok)
		}
	}
	if n := len(got["traceflake.id.fallbacks {call}"]); n != len(reasons) || got["traceflake.id.clock_steps {step}"][""] != 0 {
		t.Errorf("healthy: %v", got)
	}

	clock.set(noon.Add(13 * time.Hour)) // past the lease
	g.NewIDs(t.Context())
	g.NewSpanID(t.Context(), trace.TraceID{})
	source.refuse.Store(true)
	g.NewSpanID(t.Context(), trace.TraceID{})
	source.refuse.Store(false)
	source.leaseless.Store(true)
	g.NewSpanID(t.Context(), trace.TraceID{})
	source.leaseless.Store(false)
	clock.set(noon.Add(time.Hour)) // a step back
	g.NewIDs(t.Context())
	got = collected(t, reader)
	if n := got["traceflake.id.fallbacks {call}"]; n["error.type=lease_expired"] != 2 || n["error.type=_OTHER"] != 1 || n["error.type=no_lease"] != 1 {
		t.Errorf("fallbacks: %v", n)
	}
	if n := got["traceflake.id.clock_steps {step}"][""]; n != 1 {
		t.Errorf("%v clock steps", n)
	}
}

// A burst larger than a node's capacity borrows from the next second, and reports that.
func TestMetricsOfABurst(t *testing.T) {
	if RaceEnabled {
		t.Skip("the race detector makes sync.Pool drop batches, and with them IDs of the second")
	}
	clock := newClock(noon.Truncate(time.Second))
	reader := metric.NewManualReader()
	source, err := randflake.NewGenerator(newCodec(t, fleetSecret),
		randflake.Lease{Nodes: 1, Start: noon.Add(-time.Hour), End: noon.Add(time.Hour)}, randflake.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	g := New(WithClock(clock), WithSource(source),
		WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	for range randflake.MaxSequence + 1000 {
		g.NewSpanID(t.Context(), trace.TraceID{})
	}
	if s := collected(t, reader)["traceflake.id.borrowed s"][""]; s != 1 {
		t.Errorf("borrowed %v s", s)
	}
}

// A closed generator has no metrics; those of others remain.
func TestCloseUnregistersTheMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	provider := WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	g := New(WithClock(newClock(noon)), provider)
	g.NewIDs(t.Context())
	if got := collected(t, reader); len(got) != 4 {
		t.Fatalf("before Close: %v", got)
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := collected(t, reader); len(got) != 0 {
		t.Errorf("after Close: %v", got)
	}
	other := New(WithClock(newClock(noon)), provider)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if got := collected(t, reader); len(got) != 4 {
		t.Errorf("another generator, after Close: %v", got)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// badMeter is a meter that refuses one instrument, or the callback, or its unregistration.
type badMeter struct {
	noop.Meter
	refuses string
}

// badProvider returns a badMeter.
type badProvider struct {
	noop.MeterProvider
	meter *badMeter
}

func (p badProvider) Meter(string, ...api.MeterOption) api.Meter { return p.meter }

// badRegistration is a registration of a badMeter.
type badRegistration struct {
	noop.Registration
	meter *badMeter
}

func (r badRegistration) Unregister() error { return r.meter.may("unregister") }

var errMeter = errors.New("refused by the test's meter")

func (m *badMeter) may(name string) error {
	if name == m.refuses {
		return errMeter
	}
	return nil
}

func (m *badMeter) Float64ObservableGauge(string, ...api.Float64ObservableGaugeOption) (api.Float64ObservableGauge, error) {
	return noop.Float64ObservableGauge{}, m.may("instrument")
}

func (m *badMeter) RegisterCallback(api.Callback, ...api.Observable) (api.Registration, error) {
	if err := m.may("callback"); err != nil {
		return nil, err
	}
	return badRegistration{meter: m}, nil
}

// An error of the meter is reported, and the generator works without metrics.
func TestMeterRefuses(t *testing.T) {
	for _, what := range []string{"instrument", "callback", "unregister"} {
		errs := collectErrors(t)
		g := New(WithClock(newClock(noon)), WithMeterProvider(badProvider{meter: &badMeter{refuses: what}}))
		atClose := what == "unregister"
		if got := errs.all(); !atClose && (len(got) != 1 || !errors.Is(got[0], errMeter)) || atClose && len(got) != 0 {
			t.Errorf("%s: reported %v", what, got)
		}
		if id, span := g.NewIDs(t.Context()); !id.IsValid() || !span.IsValid() {
			t.Errorf("%s: %s, %s", what, id, span)
		}
		if err := g.Close(); errors.Is(err, errMeter) != atClose || (err != nil) != atClose {
			t.Errorf("%s: Close: %v", what, err)
		}
	}
}
