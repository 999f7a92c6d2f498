// Package tracing has only tests: traces through services that use OpenTelemetry's other
// libraries, such as otelhttp, which the root module does not require.
package tracing

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
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
	verified, plausible func(trace.TraceID) bool, h http.HandlerFunc,
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
	incoming := s.telemetry
	if verified != nil || plausible != nil {
		incoming = append(incoming,
			otelhttp.WithPropagators(xtraceid.Untrusted(propagator,
				xtraceid.Trust{Context: verified, TraceID: plausible})))
	}
	s.Server = httptest.NewServer(otelhttp.NewHandler(xtraceid.ResponseHandler(h), "server",
		incoming...))
	t.Cleanup(s.Close)
	return s
}

// edge is the code of docs/security.md.
func edge(keyring *randflake.Keyring, mux http.Handler) http.Handler {
	recent := traceid.WithPlausible(5 * time.Minute)
	verifier := traceid.NewVerifier(keyring, recent) // or ids.Verifier(recent) of package fleet
	propagator := xtraceid.Untrusted(otel.GetTextMapPropagator(),
		xtraceid.Trust{Context: verifier.Verify, TraceID: verifier.Plausible})
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "edge",
		otelhttp.WithPropagators(propagator))
	return handler
}

func TestEdge(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(xtraceid.New())
	recent := traceid.Max(time.Now()).String()
	for id, kept := range map[string]bool{recent: true, traceU: false} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("x-trace-id", id)
		w := httptest.NewRecorder()
		edge(nil, http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Header().Get("x-trace-id"); (got == id) != kept {
			t.Errorf("%s: the response has %q, want the same ID: %v", id, got, kept)
		}
	}
}
