// Package monitoring tests what operators see: docs/metrics.md, the alerts and the dashboards in
// deploy must match the metrics that are really exported and the spans that are stored.
package monitoring_test

import (
	"context"
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

// exported returns the metrics of a process as Prometheus gets them: by name the kind and the
// labels, and the values of all labels.
func exported(t *testing.T) (metrics map[string]string, values []string) {
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
	metrics = make(map[string]string)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "traceflake_") {
			continue
		}
		var labels []string
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if name := l.GetName(); !strings.HasPrefix(name, "otel_scope_") {
					labels, values = append(labels, name), append(values, l.GetValue())
				}
			}
		}
		slices.Sort(labels)
		metrics[f.GetName()] = strings.Join(
			append([]string{f.GetType().String()}, slices.Compact(labels)...), " ")
	}
	return metrics, values
}

// The page has what is exported: names, kinds, attributes, and their values. The alerts and the
// dashboard of leases use no other metrics. That they are PromQL, and when the alerts fire,
// promtool checks: deploy/prometheus/check.
func TestPage(t *testing.T) {
	page := child.Read(t, "docs/metrics.md")
	metrics, values := exported(t)
	attribute := regexp.MustCompile("(?m)^By `(\\S+)`:$")
	sections := strings.Split(page, "\n## `")[1:]
	if len(sections) != len(metrics) {
		t.Errorf("the page has %d metrics, want %d", len(sections), len(metrics))
	}
	for _, section := range sections {
		title, text, _ := strings.Cut(section, "`\n\nIn Prometheus `")
		name, text, _ := strings.Cut(text, "`")
		kind, labels := "GAUGE", []string{}
		if strings.HasSuffix(name, "_total") {
			kind = "COUNTER"
		}
		for _, m := range attribute.FindAllStringSubmatch(text, -1) {
			labels = append(labels, strings.ReplaceAll(m[1], ".", "_"))
		}
		slices.Sort(labels)
		short := strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "_seconds")
		want := strings.Join(append([]string{kind}, labels...), " ")
		if short != strings.ReplaceAll(title, ".", "_") || metrics[name] != want {
			t.Errorf("the page has %s as %s, %s; exported is %q", title, name, want, metrics[name])
		}
	}
	listed := regexp.MustCompile("(?m)^- `[^:]+`:").FindAllString(page, -1)
	for _, v := range values {
		if !strings.Contains(strings.Join(listed, ""), "`"+v+"`") {
			t.Errorf("the page lacks the value %s", v)
		}
	}
	name := regexp.MustCompile(
		`\btraceflake_[a-z_]+_(?:total|seconds)\b|\btraceflake_lease_blocks\b`)
	for _, file := range []string{"prometheus/traceflake.rules.yml", "grafana/leases.json"} {
		for _, used := range name.FindAllString(child.Read(t, "deploy/"+file), -1) {
			if metrics[used] == "" {
				t.Errorf("%s uses %s, which is not exported", file, used)
			}
		}
	}
}
