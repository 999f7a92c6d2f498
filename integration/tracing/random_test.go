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
	propagator := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{},
		xtraceid.New(xtraceid.WithRandomFlag()))
	for _, c := range []struct {
		name    string
		headers []string
		sampler sdktrace.Sampler
		flags   string // in the traceparent that orders receives
		spans   int
		random  bool
	}{
		{"a trace begins", nil, nil, "03", 3, true},
		{"it is not sampled", nil, sdktrace.NeverSample(), "02", 0, true},
		{"x-trace-id from outside", []string{"x-trace-id", traceT}, nil, "01", 3, false},
		{"traceparent without the flag", []string{"traceparent", "00-" + traceT + "-" + spanS + "-01"}, nil, "01", 3, false},
		{"traceparent with the flag", []string{"traceparent", "00-" + traceT + "-" + spanS + "-03"}, nil, "03", 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("traceparent")
			}), serviceConfig{propagator: propagation.TraceContext{}})
			edge := startEdge(t, orders.URL, propagation.TraceContext{}, serviceConfig{propagator: propagator, sampler: c.sampler})
			get(t, edge.Client(), edge.URL, c.headers...)
			edge.Close()
			orders.Close()
			spans := append(edge.spans.Ended(), orders.spans.Ended()...)
			if !strings.HasSuffix(got, "-"+c.flags) || len(spans) != c.spans {
				t.Errorf("orders got traceparent %q, want flags %s; %d spans, want %d", got, c.flags, len(spans), c.spans)
			}
			for _, span := range spans {
				if got := span.SpanContext().TraceFlags().IsRandom(); got != c.random {
					t.Errorf("%s %s: random flag %v, want %v", span.SpanKind(), span.Name(), got, c.random)
				}
			}
		})
	}
}
