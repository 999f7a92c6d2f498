package tracing

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// W3C's random flag over real HTTP: a trace that begins in edge has it, in edge, in edge's
// requests and in orders; an incoming trace has it only if it arrived with it.
func TestRandomFlag(t *testing.T) {
	with := func(opts ...xtraceid.Option) propagation.TextMapPropagator {
		return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New(opts...))
	}
	for _, c := range []struct {
		name    string
		edge    propagation.TextMapPropagator
		headers []string
		sampler sdktrace.Sampler
		flags   string // in the traceparent that orders receives
	}{
		{"a trace begins", with(xtraceid.WithRandomFlag()), nil, nil, "03"},
		{"it is not sampled", with(xtraceid.WithRandomFlag()), nil, sdktrace.NeverSample(), "02"},
		{"x-trace-id from outside", with(xtraceid.WithRandomFlag()), []string{"x-trace-id", traceT}, nil, "01"},
		{"traceparent without the flag", with(xtraceid.WithRandomFlag()), []string{"traceparent", "00-" + traceT + "-" + spanS + "-01"}, nil, "01"},
		{"traceparent with the flag", with(xtraceid.WithRandomFlag()), []string{"traceparent", "00-" + traceT + "-" + spanS + "-03"}, nil, "03"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("traceparent")
			}), serviceConfig{propagator: propagation.TraceContext{}})
			edge := startEdge(t, orders.URL, propagation.TraceContext{}, serviceConfig{propagator: c.edge, sampler: c.sampler})
			get(t, edge.Client(), edge.URL, c.headers...)

			if !strings.HasSuffix(got, "-"+c.flags) {
				t.Errorf("orders got traceparent %q, want flags %s", got, c.flags)
			}
			edge.Close()
			orders.Close()
			random := c.flags == "02" || c.flags == "03"
			spans := append(edge.spans.Ended(), orders.spans.Ended()...)
			if want := map[bool]int{true: 0, false: 3}[c.sampler != nil]; len(spans) != want {
				t.Errorf("%d spans, want %d", len(spans), want)
			}
			for _, span := range spans {
				if got := span.SpanContext().TraceFlags().IsRandom(); got != random {
					t.Errorf("%s %s: random flag %v, want %v", span.SpanKind(), span.Name(), got, random)
				}
			}
		})
	}
}
