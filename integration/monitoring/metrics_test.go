// Package monitoring tests what operators see: docs/metrics.md, the alerts and the dashboards in
// deploy must match the metrics that are really exported and the spans that are stored.
package monitoring_test

import (
	"context"
	"encoding/json"
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
	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
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
	store, err := driver.New(new(driver.Memory), driver.Layout{Name: "memory", BlocksPerPage: 64})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := lease.Start(t.Context(), store, codec, lease.WithMeterProvider(provider))
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

// Before anything but one request has happened, all packages together have at most 25 series.
func TestSeriesAtTheStart(t *testing.T) {
	_, registry := start(t)
	all, n := series(t, registry), 0
	for _, count := range all {
		n += count
	}
	if n == 0 || n > 25 {
		t.Errorf("%d series, want at most 25: %v", n, all)
	}
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

var (
	// texts, times, functions
	ignored = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|\w+( by)? *\(|\b(and|or)\b`)
	word    = regexp.MustCompile(`[a-z]\w*`)
	matcher = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"$]*)"`) // without variables
)

// check compares a PromQL expression with what is exported, and returns its series.
func check(expr string, all map[string]measured) (used []string, err error) {
	// those of its series, with their values
	labels := map[string][]string{"job": nil, "instance": nil}
	words := word.FindAllString(ignored.ReplaceAllString(expr, " "), -1)
	for _, name := range words {
		if m, ok := all[name]; ok {
			used = append(used, name)
			for attribute, values := range m.attributes {
				label := strings.ReplaceAll(attribute, ".", "_")
				labels[label] = append(labels[label], values...)
			}
		}
	}
	if len(used) == 0 {
		return nil, fmt.Errorf("%s has no series", expr)
	}
	for _, name := range words {
		if _, ok := labels[name]; !ok && !slices.Contains(used, name) {
			return nil, fmt.Errorf("%s: there is no series or label %s", expr, name)
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		for value := range strings.SplitSeq(m[2], "|") {
			if value != "" && !slices.Contains(labels[m[1]], value) {
				return nil, fmt.Errorf("%s: %s is never %q", expr, m[1], value)
			}
		}
	}
	return used, nil
}

func TestCheck(t *testing.T) {
	all := exported(t)
	for _, wrong := range []string{
		`traceflake_id_fallbacks`,
		`sum(traceflake_id_fallbacks_total{reason="no_lease"})`,
		`sum(traceflake_id_fallbacks_total{error_type="nolease"})`,
		`sum(traceflake_lease_drops_total{traceflake_lease_drop_reason="lost"})`,
		`sum(traceflake_lease_drops_total{traceflake_lease_reason="cloned"})`,
		`sum by (operation) (traceflake_lease_requests_total)`,
		`1`,
	} {
		if _, err := check(wrong, all); err == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}

// pages is where operators read the pages of this repository.
const pages = "https://github.com/traceflake/traceflake/blob/main/"

// anchors returns the names that GitHub gives to the sections of a page.
func anchors(t *testing.T, page string) (names []string) {
	t.Helper()
	dropped := regexp.MustCompile(`[^\w\- ]`)
	headings := regexp.MustCompile(`(?m)^#+ (.+)$`)
	for _, heading := range headings.FindAllStringSubmatch(child.Read(t, page), -1) {
		names = append(names,
			strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return names
}

// Alerts use exported series only, their runbook exists, and every alert has a test in which it
// fires and one in which it does not.
func TestAlerts(t *testing.T) {
	all := exported(t)
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alertname string
				Fires     []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(child.Read(t, "deploy/prometheus/traceflake.rules.yml")),
		&rules); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(child.Read(t, "deploy/prometheus/traceflake.test.yml")),
		&tests); err != nil {
		t.Fatal(err)
	}
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				fires[c.Alertname] = true
			} else {
				quiet[c.Alertname] = true
			}
		}
	}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if _, err := check(r.Expr, all); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			page, anchor, _ := strings.Cut(strings.TrimPrefix(r.Annotations["runbook_url"], pages),
				"#")
			if !slices.Contains(anchors(t, page), anchor) {
				t.Errorf("%s: there is no section %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s needs a test in which it fires (has one: %t) and one in which it "+
					"does not (%t)", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
		}
	}
}

// dashboard has the parts that the tests use.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, RawSQL string }
	}
}

func dashboardOf(t *testing.T, name string) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(child.Read(t, "deploy/grafana/"+name)), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Errorf("%s has no uid, title or panels", name)
	}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
	}
	return d
}

// The dashboard of leases shows every series.
func TestLeasesDashboard(t *testing.T) {
	all, d := exported(t), dashboardOf(t, "leases.json")
	shown := make(map[string]bool)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			used, err := check(target.Expr, all)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			for _, name := range used {
				shown[name] = true
			}
		}
	}
	for _, v := range d.Templating.List {
		if _, err := check(v.Query, all); v.Type == "query" && err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	for name := range all {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The replacements that Grafana's ClickHouse plugin makes for its macros and our variables.
var macros = strings.NewReplacer(
	"$__timeFilter(Timestamp)",
	"Timestamp >= toDateTime64(1791972000, 9) AND Timestamp <= toDateTime64(1791975600, 9)",
	"$__timeInterval(Timestamp)", "toStartOfInterval(toDateTime(Timestamp), INTERVAL 20 second)",
	"$__fromTime", "toDateTime(1791972000)",
	"$__toTime", "toDateTime(1791975600)",
	"$service", "'shop','orders'",
	"$database", "telemetry",
	"$table", "spans",
)

// spans inserts the traces of an hour, one with an error and one with a foreign ID.
const spans = `INSERT INTO telemetry.spans
	(Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration,
	StatusCode, StatusMessage)
SELECT begin + INTERVAL number % 2 second AS Timestamp,
	if(number < 2, '4bf92f3577b34da6a3ce929d0e0e4736',
		traceIDAt(begin, 0, number - number % 2 + 1)),
	leftPad(hex(number), 16, '0'), if(number % 2 = 0, '', leftPad(hex(number - 1), 16, '0')),
	'GET /', 'Server', if(number % 2 = 0, 'shop', 'orders'), 1000000 * (number + 1),
	if(number = 3, 'Error', 'Ok'), if(number = 3, 'no stock', '')
FROM (SELECT number,
	toDateTime64(1791972600, 9, 'UTC') + INTERVAL number - number % 2 second AS begin
	FROM numbers(200))`

// Every query of the dashboard runs on the table of clickhouse.Schema, whatever its name, and
// returns rows.
func TestTracesDashboard(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	e.Run(t, []string{"DROP DATABASE IF EXISTS telemetry SYNC", "CREATE DATABASE telemetry"}, nil)
	t.Cleanup(func() {
		if _, err := e.Query(context.Background(), "DROP DATABASE telemetry SYNC"); err != nil {
			t.Error(err)
		}
	})
	statements, err := clickhouse.Schema{Database: "telemetry", Table: "spans"}.Statements()
	e.Run(t, append(statements, spans), err)
	trace := e.Rows(t,
		"SELECT max(TraceId) FROM telemetry.spans WHERE ServiceName = 'orders'")[0][0]
	d := dashboardOf(t, "traces.json")
	queries := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			sql := strings.ReplaceAll(macros.Replace(target.RawSQL), "$trace", trace)
			if strings.Contains(sql, "$") {
				t.Errorf("%s: an unknown macro is left in\n%s", p.Title, sql)
				continue
			}
			if rows := e.Rows(t, sql); len(rows) == 0 {
				t.Errorf("%s finds nothing:\n%s", p.Title, sql)
			} else {
				t.Logf("%s: %d rows, the first %q", p.Title, len(rows), rows[0])
			}
			queries++
		}
	}
	if queries < len(d.Panels) {
		t.Errorf("%d queries in %d panels", queries, len(d.Panels))
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			e.Rows(t, macros.Replace(v.Query))
		}
	}
}
