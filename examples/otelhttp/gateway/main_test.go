package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/traceid"
)

// A service that knows W3C's headers and makes random IDs gets its traces from the gateway.
func TestGateway(t *testing.T) {
	var received http.Header
	unchanged := tracetest.NewSpanRecorder()
	service := httptest.NewServer(otelhttp.NewHandler(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Clone() }), "service",
		otelhttp.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(unchanged))),
		otelhttp.WithPropagators(propagation.TraceContext{})))
	defer service.Close()
	backend, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	ids := idgen.New()
	edge := httptest.NewServer(gateway(backend, sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids), sdktrace.WithSpanProcessor(recorder))))
	defer edge.Close()

	const random = "4bf92f3577b34da6a3ce929d0e0e4736"
	browser, _ := ids.NewIDs(t.Context())
	last := ""
	for i, c := range []struct {
		name    string
		headers map[string]string
		same    string // the trace goes on
		linked  string // a new trace has a link to this one
	}{
		{"without a trace", nil, "", ""},
		{"an outsider's trace", map[string]string{"traceparent": "00-" + random + "-00f067aa0ba902b7-01", "tracestate": "theirs=1"}, "", random},
		{"in one b3 header", map[string]string{"b3": random + "-00f067aa0ba902b7-1"}, "", random},
		{"in several", map[string]string{"X-B3-TraceId": random, "X-B3-SpanId": "00f067aa0ba902b7", "X-B3-Sampled": "1"}, "", random},
		{"an ordered ID", map[string]string{"traceparent": "00-" + browser.String() + "-00f067aa0ba902b7-01", "tracestate": "ours=1"}, browser.String(), ""},
		{"an old ordered ID", map[string]string{"x-trace-id": traceid.Max(time.Now().Add(-time.Hour)).String()}, "", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, edge.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()

		span := unchanged.Ended()[i]
		id := span.SpanContext().TraceID()
		if !traceid.Plausible(id, time.Now(), time.Minute, time.Second) || response.Header.Get("x-trace-id") != id.String() {
			t.Errorf("%s: the service's trace is %s, of %s; the response has %q", c.name, id, traceid.Time(id), response.Header.Get("x-trace-id"))
		}
		spans := recorder.Ended()
		proxied, root := spans[len(spans)-2], spans[len(spans)-1]
		if span.Parent().SpanID() != proxied.SpanContext().SpanID() || proxied.Parent().SpanID() != root.SpanContext().SpanID() {
			t.Errorf("%s: the spans do not form one trace", c.name)
		}
		if c.same != "" {
			if id.String() != c.same || root.Parent().SpanID().String() != "00f067aa0ba902b7" || received.Get("tracestate") != "ours=1" {
				t.Errorf("%s: the trace is %s, its root's parent %s, tracestate %q", c.name, id, root.Parent().SpanID(), received.Get("tracestate"))
			}
			continue
		}
		if root.Parent().IsValid() || id.String() <= last {
			t.Errorf("%s: %s after %s, parent %v", c.name, id, last, root.Parent())
		}
		last = id.String()
		var linked trace.TraceID
		if links := root.Links(); len(links) == 1 {
			linked = links[0].SpanContext.TraceID()
		}
		if c.linked != "" && linked.String() != c.linked {
			t.Errorf("%s: links %v", c.name, root.Links())
		}
		for name, values := range received {
			if text := strings.Join(values, ""); strings.Contains(text, random) || strings.Contains(text, "theirs") {
				t.Errorf("%s: the service receives %s: %s", c.name, name, text)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	if err := run(t.Context(), "127.0.0.1:0", "localhost"); err == nil || !strings.Contains(err.Error(), "not a URL such as") {
		t.Error(err)
	}
}
