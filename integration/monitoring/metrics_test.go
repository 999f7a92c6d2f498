// Package monitoring tests what operators see: docs/metrics.md, the alerts and the dashboards in
// deploy must match the metrics that are really exported and the spans that are stored.
package monitoring_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease/fleet"
)

// family is a metric as Prometheus gets it.
type family struct {
	kind   string
	labels map[string][]string // with their values
}

// exported returns the metrics of a process by name.
func exported(t *testing.T) map[string]family {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := fleet.Config{Store: "file:" + t.TempDir() + "/leases",
		MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]family)
	for _, f := range families {
		one := family{f.GetType().String(), make(map[string][]string)}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if name := l.GetName(); !strings.HasPrefix(name, "otel_scope_") {
					one.labels[name] = append(one.labels[name], l.GetValue())
				}
			}
		}
		if strings.HasPrefix(f.GetName(), "traceflake_") {
			all[f.GetName()] = one
		}
	}
	return all
}

// The page matches what is exported: names, kinds, attributes, and their values.
func TestPage(t *testing.T) {
	page, all := child.Read(t, "docs/metrics.md"), exported(t)
	row := regexp.MustCompile(
		"(?m)^\\| `(\\S+)` \\| `(\\S+)` \\| (.*) \\| `(\\S+)` \\| (.*?) ?\\|$")
	value := regexp.MustCompile("(?m)^\\| `([^|]+)` \\|")
	rows := row.FindAllStringSubmatch(page, -1)
	if len(rows) != len(all) {
		t.Errorf("the page has %d metrics, want %d", len(rows), len(all))
	}
	for _, r := range rows {
		name, kind, unit := strings.ReplaceAll(r[1], ".", "_"), "GAUGE", r[4]
		if unit == "s" {
			name += "_seconds"
		}
		if r[3] == "counter" {
			name, kind = name+"_total", "COUNTER"
		}
		var labels []string
		if r[5] != "" {
			labels = strings.Split(strings.NewReplacer("`", "", ".", "_").Replace(r[5]), ", ")
		}
		f := all[name]
		if r[2] != name || f.kind != kind ||
			!slices.Equal(slices.Sorted(maps.Keys(f.labels)), labels) {
			t.Errorf("the page's row is\n%s\nand exported is %+v", r[0], f)
		}
		_, section, ok := strings.Cut(page, "\n## `"+r[1]+"`\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok {
			t.Errorf("the page lacks a section on %s", r[1])
		}
		var listed []string
		for _, v := range value.FindAllStringSubmatch(section, -1) {
			listed = append(listed, strings.Split(v[1], "`, `")...)
		}
		for _, label := range labels {
			for _, v := range f.labels[label] {
				if !slices.Contains(listed, v) {
					t.Errorf("%s: the page lacks %s %s", name, label, v)
				}
			}
		}
	}
}

// The alerts and the dashboard of leases use exported metrics, and no others. That they are PromQL,
// and when the alerts fire, promtool checks: deploy/prometheus/check.
func TestUsedMetrics(t *testing.T) {
	all := exported(t)
	name := regexp.MustCompile(
		`\btraceflake_[a-z_]+_(?:total|seconds)\b|\btraceflake_lease_blocks\b`)
	for _, file := range []string{"prometheus/traceflake.rules.yml", "grafana/leases.json"} {
		for _, used := range name.FindAllString(child.Read(t, "deploy/"+file), -1) {
			if _, ok := all[used]; !ok {
				t.Errorf("%s uses %s, which is not exported", file, used)
			}
		}
	}
}
