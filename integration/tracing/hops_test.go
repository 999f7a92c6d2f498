package tracing

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// startEdge starts a service that answers each request by calling url with its context. Its client
// injects with out.
func startEdge(t *testing.T, url string, out propagation.TextMapPropagator, c serviceConfig) (edge *service) {
	t.Helper()
	edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := edge.client(out).Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	}), c)
	return edge
}

// A client with an SDK calls edge, and edge calls orders: one trace, in which each span is the
// child of the one before.
func TestTwoHops(t *testing.T) {
	for name, p := range map[string]propagation.TextMapPropagator{
		"128-bit": xtraceid.New(), "64-bit": xtraceid.New(xtraceid.WithB3TraceID64()),
	} {
		t.Run(name, func(t *testing.T) {
			orders := startService(t, http.HandlerFunc(ok), serviceConfig{propagator: p})
			edge := startEdge(t, orders.URL, p, serviceConfig{propagator: p})

			resp := get(t, edge.client(p), edge.URL)
			spans := edge.ended(t, 3) // in order of their ends: client in edge, server edge, client in the test
			spans = append(orders.ended(t, 1), spans...)
			for i, span := range spans {
				if got, want := span.SpanContext().TraceID(), spans[0].SpanContext().TraceID(); got != want {
					t.Errorf("span %d has trace %s, another span has %s", i, got, want)
				}
				want := trace.SpanID{}
				if i+1 < len(spans) {
					want = spans[i+1].SpanContext().SpanID()
				}
				if got := span.Parent().SpanID(); got != want {
					t.Errorf("span %d (%s) has parent %s, want %s", i, span.SpanKind(), got, want)
				}
			}
			if got, want := resp.Header.Get("x-trace-id"), spans[0].SpanContext().TraceID().String(); got != want {
				t.Errorf("the response has x-trace-id %q, want %s", got, want)
			}
			if n := orders.root.asked.Load(); n != 0 {
				t.Errorf("orders made %d sampling decisions although edge had decided", n)
			}
		})
	}
}

// If the caller leaves the sampling decision open, ParentBased drops the trace, unless
// WithDeferredSampled is set: then the services behind follow.
func TestOpenDecision(t *testing.T) {
	propagator := xtraceid.New(xtraceid.WithDeferredSampled())
	for _, c := range []struct {
		name       string
		propagator propagation.TextMapPropagator
		sampler    sdktrace.Sampler
		spans      int // in orders, which has no options: it needs the decision
	}{
		{"treated as sampled", propagator, sdktrace.ParentBased(sdktrace.NeverSample()), 1},
		{"ParentBased drops", xtraceid.New(), sdktrace.ParentBased(sdktrace.AlwaysSample()), 0},
		{"another sampler samples", xtraceid.New(), sdktrace.AlwaysSample(), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := startService(t, http.HandlerFunc(ok), serviceConfig{})
			edge := startEdge(t, orders.URL, c.propagator, serviceConfig{propagator: c.propagator, sampler: c.sampler})
			get(t, edge.Client(), edge.URL, "x-trace-id", traceT, "X-B3-TraceId", lowT, "X-B3-SpanId", spanS)
			edge.Close()
			orders.Close()
			edge.ended(t, 2*c.spans)
			for _, span := range orders.ended(t, c.spans) {
				if got := span.SpanContext().TraceID().String(); got != traceT {
					t.Errorf("orders has trace %s, want %s", got, traceT)
				}
			}
		})
	}
}

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
