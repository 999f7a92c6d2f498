package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// collect returns the values of all metrics by name, unit and attributes.
func collect(t *testing.T, r metric.Reader) map[string]float64 {
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

func TestMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	b := newBench(t, lease.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	want := func(wanted map[string]float64) {
		t.Helper()
		got := collect(t, reader)
		for name, v := range wanted {
			if got[name] != v {
				t.Errorf("%s is %v, want %v", name, got[name], v)
			}
		}
	}
	const blocks = "traceflake.lease.blocks {block}"
	const acquire, renew, get = "traceflake.lease.requests {request} traceflake.lease.operation=acquire",
		"traceflake.lease.requests {request} traceflake.lease.operation=renew",
		"traceflake.lease.requests {request} traceflake.lease.operation=get"

	b.store.set(lease.ErrNoFreeNode, nil)
	b.Step(t.Context())
	want(map[string]float64{
		"traceflake.lease.requests {request} error.type=no_free_node,traceflake.lease.operation=acquire": 1,
		blocks:                         0,
		"traceflake.lease.remaining s": 0,
	})
	b.store.set(nil, nil)
	b.pass(time.Second)
	b.pass(5 * time.Second)
	want(map[string]float64{
		acquire: 1,
		renew:   2, // the first one proves the grant, whose nonce was repeated
		blocks:  1,
	})
	if left := collect(t, reader)["traceflake.lease.remaining s"]; left < 5 || left > 10 {
		t.Errorf("%v s remain, want 5 to 10", left)
	}
	b.store.set(errAway, nil)
	b.pass(5 * time.Second)
	if got := collect(t, reader); got["traceflake.lease.requests {request} error.type=_OTHER,traceflake.lease.operation=renew"] < 1 ||
		got["traceflake.lease.requests {request} error.type=_OTHER,traceflake.lease.operation=get"] < 1 || got[get] != 0 {
		t.Errorf("failures are not counted: %v", got)
	}
	b.store.set(lease.ErrLost, nil)
	b.pass(time.Second)
	if got := collect(t, reader); got["traceflake.lease.requests {request} error.type=lost,traceflake.lease.operation=renew"] < 1 {
		t.Errorf("a refusal is not counted: %v", got)
	}
	b.clock.Step(time.Hour)
	b.pass(0)
	want(map[string]float64{
		"traceflake.lease.drops {grant} traceflake.lease.drop.reason=clock_gap":    1,
		"traceflake.lease.drops {grant} traceflake.lease.drop.reason=clock_behind": 0,
		blocks: 0,
	})
	b.Unregister()
	for name := range collect(t, reader) {
		t.Errorf("%s is still observed after Close", name)
	}
}

// A rate misses the first count of a series unless the series existed before, at 0.
func TestSeriesBeginAtZero(t *testing.T) {
	reader := metric.NewManualReader()
	newBench(t, lease.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	got := collect(t, reader)
	const requests, drops = "traceflake.lease.requests {request} ", "traceflake.lease.drops {grant} traceflake.lease.drop.reason="
	for _, reason := range []string{"clock_gap", "clock_behind", "store_contradiction", "cloned", "restored", "taken"} {
		if n, ok := got[drops+reason]; !ok || n != 0 {
			t.Errorf("drops for %s: %v, %v", reason, n, ok)
		}
	}
	for _, operation := range []string{"acquire", "renew", "get", "release"} {
		for _, outcome := range []string{"", "no_free_node", "clock_ahead", "lost", "block_size", "schema_version",
			"invalid_request", "misconfigured", "timeout", "_OTHER"} {
			name := requests
			if outcome != "" {
				name += "error.type=" + outcome + ","
			}
			name += "traceflake.lease.operation=" + operation
			if n, ok := got[name]; !ok || n != 0 {
				t.Errorf("%s: %v, %v", name, n, ok)
			}
		}
	}
	if want := 2 + 6 + 4*10; len(got) != want {
		t.Errorf("%d series, want %d: %v", len(got), want, got)
	}
}

// newer is a store with an error that no other test uses.
type newer struct{ *driver.Memory }

func (newer) Acquire(context.Context, lease.Request) (lease.Grant, error) {
	return lease.Grant{}, lease.ErrSchemaVersion
}

// A program may set its meter provider after starting the Keeper.
func TestRequestsBeforeTheProvider(t *testing.T) {
	codec, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	k, err := lease.Start(t.Context(), newer{driver.NewMemory()}, codec,
		lease.WithErrorHandler(func(err error) { failed <- err }))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, lease.ErrSchemaVersion) || !errors.Is(k.Failure(), err) {
		t.Errorf("%v, and the last failure is %v", err, k.Failure())
	}
	reader, before := metric.NewManualReader(), otel.GetMeterProvider()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	defer otel.SetMeterProvider(before)
	const refused = "traceflake.lease.requests {request} error.type=schema_version,traceflake.lease.operation=acquire"
	if n := collect(t, reader)[refused]; n < 1 {
		t.Errorf("%v requests are counted, want at least one", n)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
