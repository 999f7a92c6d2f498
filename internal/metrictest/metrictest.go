// Package metrictest reads metrics for tests.
package metrictest

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/internal/version"
)

// Collect returns the value of each series; of a histogram, its count. The keys are the name, the
// unit and the attributes, such as "requests {request} operation=read,outcome=ok". Every scope must
// have the library's version.
func Collect(tb testing.TB, r metric.Reader) map[string]float64 {
	tb.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(tb.Context(), &data); err != nil {
		tb.Fatal(err)
	}
	series := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		if scope.Scope.Version != version.Library() {
			tb.Errorf("scope %s has the version %q", scope.Scope.Name, scope.Scope.Version)
		}
		for _, m := range scope.Metrics {
			put := func(a attribute.Set, value float64) {
				key := m.Name + " " + m.Unit + " " + a.Encoded(attribute.DefaultEncoder())
				series[strings.TrimSpace(key)] = value
			}
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					put(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					put(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					put(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					put(p.Attributes, float64(p.Count))
				}
			default:
				tb.Errorf("%s: unexpected %T", m.Name, d)
			}
		}
	}
	return series
}
