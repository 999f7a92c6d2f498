// Package monitoring tests what operators look at: docs/metrics.md, the alerts and the dashboards in
// deploy must match what is really exported and stored.
package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

const root = "../../"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// measured is an exported metric, with the values of each attribute.
type measured struct {
	kind, unit string
	attributes map[string][]string
}

func (m *measured) add(name, value string) {
	if !slices.Contains(m.attributes[name], value) {
		m.attributes[name] = append(m.attributes[name], value)
	}
}

type away struct{ *driver.Memory }

func (away) Acquire(context.Context, lease.Request) (lease.Grant, error) {
	return lease.Grant{}, errors.New("the store is unreachable")
}

// process starts a process with an unreachable store. It returns its metrics as OpenTelemetry's SDK
// collects them, and by series name as the Prometheus exporter serves them.
func process(t *testing.T) (metrics, series map[string]*measured) {
	t.Helper()
	reader, registry := start(t, away{driver.NewMemory(driver.AllNodes)})
	for { // until a request has failed
		if requests := collected(t, reader)["traceflake.lease.requests"]; slices.Contains(requests.attributes["error.type"], "_OTHER") {
			return collected(t, reader), scraped(t, registry)
		}
		time.Sleep(time.Millisecond)
	}
}

func start(t *testing.T, store lease.Store) (*metric.ManualReader, *prometheus.Registry) {
	t.Helper()
	handler := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	t.Cleanup(func() { otel.SetErrorHandler(handler) })
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

// silent is a store that never answers.
type silent struct{ *driver.Memory }

func (silent) Describe(ctx context.Context) (lease.Description, error) {
	<-ctx.Done()
	return lease.Description{}, ctx.Err()
}

// Before anything has happened, all packages together have at most 25 series.
func TestSeriesAtTheStart(t *testing.T) {
	_, registry := start(t, silent{driver.NewMemory(driver.AllNodes)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "traceflake_") {
			n += len(f.GetMetric())
			t.Logf("%s: %d", f.GetName(), len(f.GetMetric()))
		}
	}
	if n == 0 || n > 25 {
		t.Errorf("%d series, want at most 25", n)
	}
}

func collected(t *testing.T, reader metric.Reader) map[string]*measured {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*measured)
	for _, scope := range data.ScopeMetrics {
		if scope.Scope.Version == "" {
			t.Errorf("scope %s has no version", scope.Scope.Name)
		}
		for _, m := range scope.Metrics {
			one := &measured{unit: m.Unit, attributes: make(map[string][]string)}
			all[m.Name] = one
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				one.kind = "counter"
				if !d.IsMonotonic {
					one.kind = "up-down counter"
				}
				for _, p := range d.DataPoints {
					for _, a := range p.Attributes.ToSlice() {
						one.add(string(a.Key), a.Value.AsString())
					}
				}
			case metricdata.Gauge[float64]:
				one.kind = "gauge"
			default:
				t.Errorf("%s has data of %T", m.Name, d)
			}
		}
	}
	return all
}

func scraped(t *testing.T, registry prometheus.Gatherer) map[string]*measured {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*measured)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "traceflake_") {
			continue
		}
		one := &measured{attributes: map[string][]string{"job": nil, "instance": nil}} // of the scrape
		all[f.GetName()] = one
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				one.add(l.GetName(), l.GetValue())
			}
		}
	}
	return all
}

// code returns the texts between backticks.
func code(cell string) []string {
	var all []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

func sorted(s []string) string {
	s = slices.Clone(s)
	slices.Sort(s)
	return strings.Join(s, " ")
}

// The page matches what is exported: names, kinds, units, attributes and their values.
func TestPage(t *testing.T) {
	all, inPrometheus := process(t)
	documented := make(map[string]*measured)
	var of *measured // the current section
	var attribute string
	for line := range strings.SplitSeq(read(t, "docs/metrics.md"), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			if of = documented[strings.Trim(heading, "`")]; of == nil {
				t.Errorf("section %s is not in the table", heading)
				of = new(measured)
			}
			attribute = ""
			continue
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, "|")
		first := code(cells[1])[0]
		if of != nil {
			if _, ok := of.attributes[first]; ok {
				attribute = first // the head of a table of values
			} else {
				of.attributes[attribute] = append(of.attributes[attribute], first)
			}
			continue
		}
		m := &measured{kind: strings.TrimSpace(cells[3]), unit: code(cells[4])[0], attributes: make(map[string][]string)}
		for _, name := range code(cells[5]) {
			m.attributes[name] = nil
		}
		documented[first] = m
		series := code(cells[2])[0]
		if inPrometheus[series] == nil {
			t.Errorf("%s is not exported to Prometheus", series)
		}
		delete(inPrometheus, series)
	}
	for name := range inPrometheus {
		t.Errorf("the page lacks %s", name)
	}
	for name, m := range all {
		page := documented[name]
		if page == nil {
			t.Errorf("the page lacks %s", name)
			continue
		}
		if page.kind != m.kind || page.unit != m.unit {
			t.Errorf("%s is a %s in %s, want a %s in %s as documented", name, m.kind, m.unit, page.kind, page.unit)
		}
		for attribute, values := range m.attributes {
			listed := page.attributes[attribute]
			switch {
			case attribute == "traceflake.vmclock": // a process exports one of the values
				if len(listed) != 3 || !slices.Contains(listed, values[0]) {
					t.Errorf("%s: %s is %s, want one of %s", name, attribute, values, listed)
				}
			case name == "traceflake.lease.requests": // its series begin with their first count
				for _, value := range values {
					if !slices.Contains(listed, value) {
						t.Errorf("%s: the page lacks %s %s", name, attribute, value)
					}
				}
			case sorted(values) != sorted(listed):
				t.Errorf("%s: the values of %s are\n%s\nwant\n%s", name, attribute, sorted(values), sorted(listed))
			}
		}
		if len(m.attributes) != len(page.attributes) {
			t.Errorf("%s has %d attributes, want %d", name, len(m.attributes), len(page.attributes))
		}
	}
	for name := range documented {
		if all[name] == nil {
			t.Errorf("%s is not exported", name)
		}
	}
}

var (
	word     = regexp.MustCompile(`traceflake_\w+`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
)

// check compares a PromQL expression with what is scraped, and returns its series.
func check(expr string, all map[string]*measured) (series []string, err error) {
	labels := make(map[string][]string) // of its series, with their values
	for _, name := range word.FindAllString(expr, -1) {
		if one := all[name]; one != nil {
			series = append(series, name)
			for label, values := range one.attributes {
				labels[label] = append(labels[label], values...)
			}
		}
	}
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", expr, fmt.Errorf(format, args...)))
	}
	if len(series) == 0 {
		wrong("it has no series")
	}
	used := word.FindAllString(expr, -1)
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		used = append(used, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		used = append(used, m[1])
		if strings.Contains(m[2], "$") || len(labels[m[1]]) == 0 { // a variable, or a label of the scrape
			continue
		}
		for value := range strings.SplitSeq(m[2], "|") {
			if value != "" && !slices.Contains(labels[m[1]], value) {
				wrong("%s is never %q", m[1], value)
			}
		}
	}
	for _, name := range used {
		if _, ok := labels[name]; !ok && all[name] == nil {
			wrong("there is no series or label %s", name)
		}
	}
	return series, errors.Join(errs...)
}

func TestCheck(t *testing.T) {
	_, all := process(t)
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

// Alerts use exported series only, and every alert has a test in which it fires and one in which
// it does not.
func TestAlerts(t *testing.T) {
	_, all := process(t)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
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
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/traceflake.rules.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/traceflake.test.yml")), &tests); err != nil {
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
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s needs a test in which it fires (has one: %t) and one in which it does not (%t)", r.Alert, fires[r.Alert], quiet[r.Alert])
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
	Panels []panel
}

type panel struct {
	Title, Type string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr, RawSQL string }
	Panels      []panel
}

func dashboardOf(t *testing.T, name string) (d dashboard) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(read(t, "deploy/grafana/"+name)))
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Errorf("%s has no uid, title or panels", name)
	}
	for i, p := range d.Panels {
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is outside of the grid: %+v", p.Title, p.GridPos)
		}
		for _, q := range d.Panels[:i] {
			a, b := p.GridPos, q.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%s lies over %s", p.Title, q.Title)
			}
		}
	}
	return d
}

// The dashboard of leases shows every series.
func TestLeasesDashboard(t *testing.T) {
	_, all := process(t)
	shown := make(map[string]bool)
	d := dashboardOf(t, "leases.json")
	for _, p := range d.Panels {
		if p.Type != "row" && p.Type != "text" && len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, target := range p.Targets {
			series, err := check(target.Expr, all)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			for _, name := range series {
				shown[name] = true
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			if _, err := check(v.Query, all); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
	for name := range all {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}
