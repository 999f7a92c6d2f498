// Package monitoring tests what operators see: docs/metrics.md, the alerts and the dashboards in
// deploy must match the metrics that are really exported and the spans that are stored.
package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// measured is an exported metric.
type measured struct {
	name, kind, unit string
	attributes       map[string][]string // with their values
}

// start starts a process whose store was not created.
func start(t *testing.T) (*metric.ManualReader, *prometheus.Registry) {
	t.Helper()
	reportstest.Collect(t)
	codec, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	registry, reader := prometheus.NewRegistry(), metric.NewManualReader()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithReader(exporter))
	store, err := stores.New(new(memstore.Objects),
		driver.Layout{Name: "memory", BlocksPerPage: 64})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := lease.Start(t.Context(), store, lease.FixedSecret(codec),
		lease.WithMeterProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	ids := idgen.New(idgen.WithSource(keeper), idgen.WithMeterProvider(provider))
	t.Cleanup(func() {
		if err := errors.Join(keeper.Close(context.Background()), ids.Close()); err != nil {
			t.Error(err)
		}
	})
	return reader, registry
}

// series returns how many series each of our metrics has in Prometheus.
func series(t *testing.T, registry prometheus.Gatherer) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "traceflake_") {
			all[f.GetName()] = len(f.GetMetric())
		}
	}
	return all
}

// exported returns the metrics of a process by their names in Prometheus.
func exported(t *testing.T) map[string]measured {
	t.Helper()
	reader, registry := start(t)
	inPrometheus := series(t, registry)
	// until one has failed
	for ; inPrometheus["traceflake_lease_requests_total"] < 2; inPrometheus = series(t, registry) {
		time.Sleep(time.Millisecond)
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]measured)
	for _, scope := range data.ScopeMetrics {
		if scope.Scope.Version == "" {
			t.Errorf("scope %s has no version", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			one := measured{name: m.Name, unit: m.Unit, kind: "gauge",
				attributes: make(map[string][]string)}
			name := strings.ReplaceAll(m.Name, ".", "_")
			if m.Unit == "s" {
				name += "_seconds"
			}
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				one.kind = "up-down counter"
				if sum.IsMonotonic {
					one.kind, name = "counter", name+"_total"
				}
				for _, p := range sum.DataPoints {
					for _, a := range p.Attributes.ToSlice() {
						one.attributes[string(a.Key)] = append(one.attributes[string(a.Key)],
							a.Value.AsString())
					}
				}
			}
			all[name] = one
			if inPrometheus[name] == 0 {
				t.Errorf("%s is not %s in Prometheus", m.Name, name)
			}
		}
	}
	if len(all) != len(inPrometheus) {
		t.Errorf("got %v, in Prometheus %v", all, inPrometheus)
	}
	return all
}

// The page matches what is exported: names, kinds, units, attributes and their values.
func TestPage(t *testing.T) {
	page, all := child.Read(t, "docs/metrics.md"), exported(t)
	row := regexp.MustCompile("(?m)^\\| `([^`]+)`")
	for name, m := range all {
		attributes := slices.Sorted(maps.Keys(m.attributes))
		want := fmt.Sprintf("\n| `%s` | `%s` | %s | `%s` | ", m.name, name, m.kind, m.unit)
		if len(attributes) > 0 {
			want += "`" + strings.Join(attributes, "`, `") + "` "
		}
		if !strings.Contains(page, want+"|\n") {
			t.Errorf("the page lacks%s", want)
		}
		_, section, ok := strings.Cut(page, "\n## `"+m.name+"`\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok {
			t.Errorf("the page lacks a section on %s", m.name)
		}
		for _, attribute := range attributes {
			_, table, _ := strings.Cut(section, "\n| `"+attribute+"` |")
			table, _, _ = strings.Cut(table, "\n\n")
			var listed []string
			for _, value := range row.FindAllStringSubmatch(table, -1) {
				listed = append(listed, value[1])
			}
			values := m.attributes[attribute]
			for _, value := range values {
				if !slices.Contains(listed, value) {
					t.Errorf("%s: the page lacks %s %s", m.name, attribute, value)
				}
			}
			for _, value := range listed {
				// A process exports one state of vmclock, and most series of requests begin with
				// their first count.
				if attribute != "traceflake.vmclock" && m.name != "traceflake.lease.requests" &&
					!slices.Contains(values, value) {
					t.Errorf("%s: %s is never %s", m.name, attribute, value)
				}
			}
		}
	}
	if rows := strings.Count(page, "` | `traceflake_"); rows != len(all) {
		t.Errorf("%d metrics on the page, want %d", rows, len(all))
	}
}

// The alerts and the dashboard of leases use exported metrics, and no others. That they are PromQL,
// and when the alerts fire, promtool checks: deploy/prometheus/check.
func TestUsedMetrics(t *testing.T) {
	all := exported(t)
	name := regexp.MustCompile(
		`\btraceflake_[a-z_]+_(?:total|seconds)\b|\btraceflake_lease_blocks\b`)
	for _, file := range []string{"prometheus/traceflake.rules.yml", "grafana/leases.json"} {
		used := name.FindAllString(child.Read(t, "deploy/"+file), -1)
		for _, metric := range used {
			if _, ok := all[metric]; !ok {
				t.Errorf("%s uses %s, which is not exported", file, metric)
			}
		}
		if len(used) < len(all) {
			t.Errorf("%s uses %d metrics, fewer than are exported", file, len(used))
		}
	}
}
