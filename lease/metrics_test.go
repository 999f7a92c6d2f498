package lease_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// metered returns an option that provides meters, and a function that returns the values of all
// metrics by name, unit and attributes.
func metered(t *testing.T) (lease.Option, func() map[string]float64) {
	t.Helper()
	reader := sdk.NewManualReader()
	return lease.WithMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))), func() map[string]float64 { return collect(t, reader) }
}

func collect(t *testing.T, r sdk.Reader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	put := func(m metricdata.Metrics, attrs attribute.Set, v float64) {
		got[strings.TrimSpace(m.Name+" "+m.Unit+" "+attrs.Encoded(attribute.DefaultEncoder()))] = v
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					put(m, p.Attributes, float64(p.Value))
				}
				if len(scope.Scope.Version) == 0 {
					t.Errorf("the scope of %s has no version", m.Name)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					put(m, p.Attributes, p.Value)
				}
			default:
				t.Errorf("%s has data of %T", m.Name, d)
			}
		}
	}
	return got
}

const (
	blocks    = "traceflake.lease.blocks {block}"
	remaining = "traceflake.lease.remaining s"
	drops     = "traceflake.lease.drops {grant} traceflake.lease.drop.reason="
)

// requests is the name of the series of an operation and an outcome.
func requests(operation, outcome string) string {
	if outcome != "" {
		outcome = "error.type=" + outcome + ","
	}
	return "traceflake.lease.requests {request} " + outcome + "traceflake.lease.operation=" + operation
}

func TestMetrics(t *testing.T) {
	option, collect := metered(t)
	b := newBench(t, option)
	want := func(wanted map[string]float64) {
		t.Helper()
		got := collect()
		for name, v := range wanted {
			if got[name] != v {
				t.Errorf("%s is %v, want %v", name, got[name], v)
			}
		}
	}
	b.store.set(lease.ErrNoFreeNode, nil)
	b.Step(t.Context())
	want(map[string]float64{requests("acquire", "no_free_node"): 1, blocks: 0, remaining: 0})
	b.store.set(nil, nil)
	b.pass(time.Second)
	b.pass(5 * time.Second)
	want(map[string]float64{
		requests("acquire", ""): 1, requests("renew", ""): 2, // the first proves the grant, whose nonce was repeated
		blocks: 1, remaining: b.block(0).End.Sub(b.clock.Now()).Seconds(),
	})
	b.store.set(errAway, nil)
	b.pass(5 * time.Second)
	if got := collect(); got[requests("renew", "_OTHER")] < 1 || got[requests("get", "_OTHER")] < 1 || got[requests("get", "")] != 0 {
		t.Errorf("failures are not counted: %v", got)
	}
	b.store.set(lease.ErrLost, nil)
	b.pass(time.Second)
	if got := collect(); got[requests("renew", "lost")] < 1 {
		t.Errorf("a refusal is not counted: %v", got)
	}
	b.clock.Step(time.Hour)
	b.pass(0)
	want(map[string]float64{drops + "clock_gap": 1, drops + "clock_behind": 0, blocks: 0})
}

// A rate misses the first count of a series unless the series existed before, at 0: those of which a
// single count matters do, and no others. Close ends the metrics.
func TestSeriesBeginAtZero(t *testing.T) {
	option, collect := metered(t)
	b := newBench(t, option)
	want := []string{blocks, remaining, requests("acquire", "no_free_node")}
	for _, reason := range []string{"clock_gap", "clock_behind", "store_contradiction", "cloned", "restored", "raised", "taken"} {
		want = append(want, drops+reason)
	}
	got := collect()
	for _, name := range want {
		if n, ok := got[name]; !ok || n != 0 {
			t.Errorf("%s: %v, %v", name, n, ok)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d series, want %d: %v", len(got), len(want), got)
	}
	b.store.set(errAway, nil)
	b.pass(0)
	if got := collect(); got[requests("acquire", "_OTHER")] != 1 || got[requests("describe", "")] != 1 || len(got) != len(want)+2 {
		t.Errorf("after two requests the metrics are %v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a bench has no goroutine to wait for
	_ = b.Close(ended)
	if got := collect(); len(got) != 0 {
		t.Errorf("after Close the metrics are %v", got)
	}
}

// docs/metrics.md lists each operation and each outcome of a request, and no others.
func TestPageListsRequests(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## `traceflake.lease.requests`")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, row[1])
	}
	want := lease.RequestValues()
	slices.Sort(want)
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q, want\n%q", listed, want)
	}
}

// globalReader sets OpenTelemetry's meter provider, which a process can do only once.
var globalReader = sync.OnceValue(func() sdk.Reader {
	reader := sdk.NewManualReader()
	otel.SetMeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader)))
	return reader
})

// A program may set its meter provider after starting the Keeper.
func TestRequestsBeforeTheProvider(t *testing.T) {
	failed := make(chan error, 1)
	k, err := lease.Start(t.Context(), &fakeStore{Store: driver.NewMemory(), away: lease.ErrSchemaVersion}, testCodec(t),
		lease.WithErrorHandler(func(err error) { failed <- err }))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, lease.ErrSchemaVersion) || !errors.Is(k.Failure(), err) {
		t.Errorf("%v, and the last failure is %v", err, k.Failure())
	}
	if n := collect(t, globalReader())[requests("acquire", "schema_version")]; n < 1 {
		t.Errorf("%v requests are counted, want at least one", n)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// broken is a meter, and its provider, that fails for an instrument or for the callback.
type broken struct {
	embedded.MeterProvider
	noMeter
	what string
}

type noMeter = noop.Meter

func (b broken) Meter(string, ...metric.MeterOption) metric.Meter { return b }

func (b broken) fail(what string) error {
	if what == b.what {
		return errAway
	}
	return nil
}

func (b broken) Float64ObservableGauge(string, ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return noop.Float64ObservableGauge{}, b.fail("gauge")
}

func (b broken) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return noop.Registration{}, b.fail("callback")
}

func TestMetricsThatFail(t *testing.T) {
	for _, what := range []string{"gauge", "callback"} {
		if _, err := lease.NewKeeper(driver.NewMemory(), testCodec(t), lease.WithMeterProvider(broken{what: what})); !errors.Is(err, errAway) {
			t.Errorf("%s: %v, want the meter's error", what, err)
		}
	}
}
