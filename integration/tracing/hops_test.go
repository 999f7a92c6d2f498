package tracing

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	b3 "go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// forward calls url with the request's context.
func forward(t *testing.T, c *http.Client, url string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	}
}

// A client with an SDK calls edge, and edge calls orders: one trace, in which each span is the
// child of the one before.
func TestTwoHops(t *testing.T) {
	encodings := []b3.Encoding{b3.B3MultipleHeader, b3.B3SingleHeader, b3.B3MultipleHeader | b3.B3SingleHeader}
	for _, enc := range encodings {
		for _, short := range []bool{false, true} {
			t.Run(fmt.Sprintf("encoding %d, 64-bit %v", enc, short), func(t *testing.T) {
				opts := []xtraceid.Option{xtraceid.WithB3Encoding(enc)}
				if short {
					opts = append(opts, xtraceid.WithB3TraceID64())
				}
				p := xtraceid.New(opts...)
				orders := startService(t, http.HandlerFunc(ok), serviceConfig{propagator: p})
				var edge *service
				edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					forward(t, edge.client(p), orders.URL)(w, r)
				}), serviceConfig{propagator: p})

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
}

// A peer with plain B3 only keeps what B3 can carry, in both directions.
func TestPlainB3Peer(t *testing.T) {
	plain := b3.New(b3.WithInjectEncoding(b3.B3MultipleHeader))
	for _, c := range []struct {
		name         string
		caller, peer propagation.TextMapPropagator
		low64        bool
	}{
		{name: "it is called", caller: xtraceid.New(), peer: plain},
		{name: "it is called with 64 bits", caller: xtraceid.New(xtraceid.WithB3TraceID64()), peer: plain, low64: true},
		{name: "it calls", caller: plain, peer: xtraceid.New()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startService(t, http.HandlerFunc(ok), serviceConfig{propagator: c.peer})
			get(t, s.client(c.caller), s.URL)
			spans := s.ended(t, 2)
			server, client := spans[0], spans[1]
			if server.SpanKind() != trace.SpanKindServer {
				server, client = client, server
			}
			got, want := server.SpanContext().TraceID(), client.SpanContext().TraceID()
			if c.low64 {
				clear(want[:8])
			}
			if got != want || server.Parent().SpanID() != client.SpanContext().SpanID() {
				t.Errorf("server: trace %s, parent %s; client: trace %s, span %s",
					got, server.Parent().SpanID(), want, client.SpanContext().SpanID())
			}
		})
	}
}

// If the caller leaves the sampling decision open, the service makes it once, and the services
// behind follow.
func TestOpenDecision(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    []xtraceid.Option
		sampler sdktrace.Sampler
		sampled bool
	}{
		{"treated as sampled", []xtraceid.Option{xtraceid.WithDeferredSampled()}, sdktrace.ParentBased(sdktrace.NeverSample()), true},
		{"ParentBased drops", nil, sdktrace.ParentBased(sdktrace.AlwaysSample()), false},
		{"another sampler samples", nil, sdktrace.AlwaysSample(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// orders has no options: it needs the decision.
			orders := startService(t, http.HandlerFunc(ok), serviceConfig{})
			p := xtraceid.New(c.opts...)
			var edge *service
			edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(t, edge.client(p), orders.URL)(w, r)
			}), serviceConfig{propagator: p, sampler: c.sampler})

			get(t, edge.Client(), edge.URL, "x-trace-id", traceT, "X-B3-TraceId", lowT, "X-B3-SpanId", spanS)
			n := 0
			if c.sampled {
				n = 1
			}
			edge.Close()
			orders.Close()
			edge.ended(t, 2*n)
			for _, span := range orders.ended(t, n) {
				if got := span.SpanContext().TraceID().String(); got != traceT {
					t.Errorf("orders has trace %s, want %s", got, traceT)
				}
			}
		})
	}
}

// A service with instrumentation but without an SDK forwards what it received.
func TestWithoutSDK(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		trace   string
		parent  string
		root    bool // the next service decides about sampling
	}{
		{"x-trace-id alone", []string{"x-trace-id", traceT}, traceT, noSpan, true},
		{"x-trace-id and other B3", []string{"x-trace-id", traceT, "b3", traceU + "-" + spanS + "-0"}, traceT, noSpan, true},
		{"x-trace-id and 64-bit B3", []string{"x-trace-id", traceT, "b3", lowT + "-" + spanS + "-1"}, traceT, spanS, false},
		{"open decision", []string{"x-trace-id", traceT, "b3", lowT + "-" + spanS}, traceT, spanS, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := xtraceid.New()
			// The last service treats an open decision as sampled, and the decision "0" as
			// unsampled.
			last := startService(t, http.HandlerFunc(ok), serviceConfig{propagator: xtraceid.New(xtraceid.WithDeferredSampled())})
			none := otelhttp.WithTracerProvider(noop.NewTracerProvider())
			client := &http.Client{Transport: otelhttp.NewTransport(last.Client().Transport, none, otelhttp.WithPropagators(p))}
			middle := httptest.NewServer(otelhttp.NewHandler(xtraceid.ResponseHandler(forward(t, client, last.URL)), "middle",
				none, otelhttp.WithPropagators(p)))
			defer middle.Close()

			resp := get(t, middle.Client(), middle.URL, c.headers...)
			span := last.ended(t, 1)[0]
			if got := span.SpanContext().TraceID().String(); got != c.trace {
				t.Errorf("trace %s, want %s", got, c.trace)
			}
			if got := span.Parent().SpanID().String(); got != c.parent {
				t.Errorf("parent %s, want %s", got, c.parent)
			}
			if asked := last.root.asked.Load() == 1; asked != c.root {
				t.Errorf("the root sampler was called: %v, want %v", asked, c.root)
			}
			if got := resp.Header.Get("x-trace-id"); got != c.trace {
				t.Errorf("the response has x-trace-id %q, want %s", got, c.trace)
			}
		})
	}
}
