// Package tracing has only tests: traces through services that use OpenTelemetry's other
// libraries, such as otelhttp and autoprop, which the root module does not require.
package tracing

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const (
	traceT = "32d1f0a9c8000005a1b2c3d4e5f60718" // x-trace-id in most cases
	traceU = "32d1f0a9c8000006ffeeddccbbaa9988" // another trace
	lowT   = "a1b2c3d4e5f60718"
	low64  = "00f067aa0ba902b7" // a 64-bit trace ID that is not T's low half
	spanS  = "53995c3f42cd8ad8"
)

// service is a server with its own SDK.
type service struct {
	*httptest.Server
	telemetry []otelhttp.Option
	spans     *tracetest.SpanRecorder
}

// startService starts a server until the test ends.
func startService(t *testing.T, propagator propagation.TextMapPropagator, sampler sdktrace.Sampler,
	verify func(trace.TraceID) bool, h http.HandlerFunc,
) *service {
	t.Helper()
	s := &service{spans: tracetest.NewSpanRecorder()}
	if sampler == nil {
		sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans),
		sdktrace.WithSampler(sampler), sdktrace.WithIDGenerator(idgen.New()))
	s.telemetry = []otelhttp.Option{otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(propagator)}
	if verify != nil {
		s.telemetry = append(s.telemetry, otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verify)))
	}
	s.Server = httptest.NewServer(otelhttp.NewHandler(xtraceid.ResponseHandler(h), "server",
		s.telemetry...))
	t.Cleanup(s.Close)
	return s
}

// get sends a request without an SDK, as a foreign client does. It reads the whole body.
func get(t *testing.T, c *http.Client, url string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

// Every response has the headers once, over HTTP/2 too, whatever net/http's handlers and otelhttp
// do to it. That the handler's writer can stream, hijack and send early hints is tested with the
// package.
func TestResponses(t *testing.T) {
	modified := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	content := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", modified, strings.NewReader("hello"))
	})
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	waits := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	for _, c := range []struct {
		handler http.Handler
		header  []string
		status  int
	}{
		{handler: content, status: 200},
		{handler: content, header: []string{"Range", "bytes=9999999-"}, status: 416}, // http.Error
		{handler: content, header: []string{"If-Modified-Since", modified.Format(http.TimeFormat)},
			status: 304},
		{handler: panics, status: 500},
		{handler: http.TimeoutHandler(waits, time.Millisecond, ""), status: 503},
	} {
		traced := otelhttp.NewHandler(xtraceid.ResponseHandler(c.handler), "server",
			otelhttp.WithPropagators(xtraceid.New()))
		recovers := func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					http.Error(w, "sorry", http.StatusInternalServerError)
				}
			}()
			traced.ServeHTTP(w, r)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(recovers))
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics
		s.EnableHTTP2 = true
		s.StartTLS()
		resp := get(t, s.Client(), s.URL, append(c.header, "x-trace-id", traceT)...)
		s.Close()
		if resp.StatusCode != c.status || resp.ProtoMajor != 2 {
			t.Errorf("%s %s, want %d", resp.Proto, resp.Status, c.status)
		}
		for name, want := range map[string]string{"x-trace-id": traceT,
			"Access-Control-Expose-Headers": "x-trace-id"} {
			if got := resp.Header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%d: %s %q, want %q", c.status, name, got, want)
			}
		}
	}
}

// What OpenTelemetry's propagators read is removed at the edge.
func TestRemoveContext(t *testing.T) {
	for _, name := range []string{
		"tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace",
	} {
		propagator, err := autoprop.TextMapPropagator(name)
		if err != nil {
			t.Fatal(err)
		}
		fields := propagator.Fields()
		h := http.Header{"X-Request-Id": {"1"}}
		for _, field := range fields {
			h.Set(field, "1")
		}
		if xtraceid.RemoveContext(h); len(fields) == 0 || len(h) != 1 {
			t.Errorf("%s: of %q, %v stay", name, fields, h)
		}
	}
}
