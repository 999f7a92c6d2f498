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

// start starts a process with an unreachable store, and its metrics.
func start(t *testing.T, readers ...metric.Option) *idgen.Generator {
	t.Helper()
	handler := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	t.Cleanup(func() { otel.SetErrorHandler(handler) })
	codec, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	provider := metric.NewMeterProvider(readers...)
	keeper, err := lease.Start(t.Context(), away{driver.NewMemory()}, codec, lease.WithMeterProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	ids := idgen.New(idgen.WithSource(keeper), idgen.WithMeterProvider(provider))
	t.Cleanup(func() {
		if err := errors.Join(keeper.Close(context.Background()), ids.Close()); err != nil {
			t.Error(err)
		}
	})
	return ids
}

// exported returns what OpenTelemetry's SDK collects.
func exported(t *testing.T) map[string]*measured {
	t.Helper()
	reader := metric.NewManualReader()
	start(t, metric.WithReader(reader))
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

// scraped returns what OpenTelemetry's Prometheus exporter serves, by series name.
func scraped(t *testing.T) map[string]*measured {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	start(t, metric.WithReader(exporter))
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
	all, inPrometheus := exported(t), scraped(t)
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
		switch {
		case of == nil:
			m := &measured{
				kind: strings.TrimSpace(cells[3]), unit: code(cells[4])[0], attributes: make(map[string][]string),
			}
			for _, name := range code(cells[5]) {
				m.attributes[name] = nil
			}
			documented[first] = m
			series := code(cells[2])[0]
			if inPrometheus[series] == nil {
				t.Errorf("%s is not exported to Prometheus", series)
			}
			delete(inPrometheus, series)
		case hasKey(of.attributes, first):
			attribute = first // the head of a table of values
		default:
			of.attributes[attribute] = append(of.attributes[attribute], first)
		}
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
			if attribute == "traceflake.vmclock" { // a process exports one of the values
				if len(listed) != 3 || !slices.Contains(listed, values[0]) {
					t.Errorf("%s: %s is %s, want one of %s", name, attribute, values, listed)
				}
			} else if sorted(values) != sorted(listed) {
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

func hasKey(m map[string][]string, key string) bool {
	_, ok := m[key]
	return ok
}

var (
	selector = regexp.MustCompile(`(traceflake_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
)

// check compares a PromQL expression with what is scraped, and returns its series.
func check(expr string, all map[string]*measured) (series []string, err error) {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", expr, fmt.Errorf(format, args...)))
	}
	labels := make(map[string]bool)
	// Labels begin like series.
	names := grouping.ReplaceAllString(expr, " ")
	names = matcher.ReplaceAllStringFunc(names, func(m string) string { return "label_" + m })
	names = strings.ReplaceAll(names, "label_traceflake_", "label__")
	for _, m := range selector.FindAllStringSubmatch(names, -1) {
		one := all[m[1]]
		if one == nil {
			wrong("there is no series %s", m[1])
			continue
		}
		series = append(series, m[1])
		for name := range one.attributes {
			labels[name] = true
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			name := strings.TrimPrefix(strings.Replace(l[1], "label__", "label_traceflake_", 1), "label_")
			values, ok := one.attributes[name]
			if !ok {
				wrong("%s has no label %s", m[1], name)
			}
			if strings.Contains(l[3], "$") || len(values) == 0 { // a variable, or a label of the scrape
				continue
			}
			for value := range strings.SplitSeq(l[3], "|") {
				if value != "" && !slices.Contains(values, value) {
					wrong("%s of %s is never %q", name, m[1], value)
				}
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if name = strings.TrimSpace(name); !labels[name] {
				wrong("none of its series has a label %s", name)
			}
		}
	}
	if len(series) == 0 {
		wrong("it has no series")
	}
	return series, errors.Join(errs...)
}

func TestCheck(t *testing.T) {
	all := scraped(t)
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
	all := scraped(t)
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
	all, shown := scraped(t), make(map[string]bool)
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
