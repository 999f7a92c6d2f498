package xtraceid

import (
	"net/http"

	"go.opentelemetry.io/otel/trace"
)

// Untrusted returns a function for otelhttp's WithPublicEndpointFn. It returns true for requests
// whose trace ID verify refuses; they start a new trace with a link to the span in the request, if
// there is one. verify is called on each request with a trace ID and must be safe for concurrent
// use; a nil verify refuses every ID.
//
//	otelhttp.NewHandler(mux, "edge",
//		otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verifier.Verify)))
//
// This is a hint of origin, not authentication. Only the span context is dropped: B3's debug flag
// of a refused request, and baggage, still reach downstream services. [WithVerifier] drops the flag.
func Untrusted(verify func(trace.TraceID) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		// What otelhttp has extracted. A local span belongs to this process.
		sc := trace.SpanContextFromContext(r.Context())
		if !sc.IsRemote() || !sc.HasTraceID() {
			return false
		}
		return verify == nil || !verify(sc.TraceID())
	}
}
