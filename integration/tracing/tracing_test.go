// Package tracing has only tests: traces through services that use OpenTelemetry's other
// libraries, such as otelhttp, which the root module does not require.
package tracing

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

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

// globals sets OpenTelemetry's globals for a test.
func globals(t *testing.T, options ...sdktrace.TracerProviderOption) {
	propagator, provider := otel.GetTextMapPropagator(), otel.GetTracerProvider()
	t.Cleanup(func() {
		otel.SetTextMapPropagator(propagator)
		otel.SetTracerProvider(provider)
	})
	otel.SetTextMapPropagator(xtraceid.New())
	otel.SetTracerProvider(sdktrace.NewTracerProvider(
		append(options, sdktrace.WithIDGenerator(idgen.New()))...))
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
