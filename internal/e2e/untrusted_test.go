package e2e

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// A request with an ID of other origin starts a new trace with a link.
func TestUntrusted(t *testing.T) {
	ours, err := trace.TraceIDFromHex(traceT)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(id trace.TraceID) bool { return id == ours }

	for _, c := range []struct {
		name    string
		headers []string
		trace   string // "" is a new one
		parent  string
		links   []string
	}{
		{"ours", []string{"x-trace-id", traceT, "b3", lowT + "-" + spanS + "-1"}, traceT, spanS, nil},
		{"ours, no parent", []string{"x-trace-id", traceT}, traceT, noSpan, nil},
		{"another's", []string{"x-trace-id", traceU, "b3", low64 + "-" + spanS + "-1"}, "", noSpan, []string{traceU, spanS}},
		{"another's, not sampled", []string{"x-trace-id", traceU, "b3", low64 + "-" + spanS + "-0"}, "", noSpan, []string{traceU, spanS}},
		{"another's, B3 alone", []string{"b3", traceU + "-" + spanS + "-1"}, "", noSpan, []string{traceU, spanS}},
		{"64-bit B3 alone", []string{"b3", low64 + "-" + spanS + "-1"}, "", noSpan, []string{"0000000000000000" + low64, spanS}},
		{"another's, no span to link to", []string{"x-trace-id", traceU}, "", noSpan, nil},
		{"no trace ID", nil, "", noSpan, nil},
		{"malformed", []string{"x-trace-id", "x"}, "", noSpan, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := startService(t, http.HandlerFunc(ok), serviceConfig{})
			p := xtraceid.New()
			var edge *service
			edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(t, edge.client(p), orders.URL)(w, r)
			}), serviceConfig{propagator: p, options: []otelhttp.Option{otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verify))}})

			resp := get(t, edge.Client(), edge.URL, c.headers...)
			span := edge.ended(t, 2)[1]
			got := span.SpanContext().TraceID().String()
			if c.trace == "" && (got == traceT || got == traceU || got[:16] == noSpan) || c.trace != "" && got != c.trace {
				t.Errorf("trace %s, want %q", got, c.trace)
			}
			if p := span.Parent().SpanID().String(); p != c.parent {
				t.Errorf("parent %s, want %s", p, c.parent)
			}
			checkLinks(t, span, c.links...)
			if h := resp.Header.Get("x-trace-id"); h != got {
				t.Errorf("the response has x-trace-id %q, want the new trace %s", h, got)
			}
			if next := orders.ended(t, 1)[0].SpanContext().TraceID().String(); next != got {
				t.Errorf("the service behind has trace %s, want %s", next, got)
			}
		})
	}
}
