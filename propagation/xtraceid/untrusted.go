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
// A request without a trace ID is not untrusted: it starts a new trace anyway, or continues the
// span of an outer handler.
//
// This is a hint of origin, not authentication. Only the span context is dropped: the B3 debug
// flag of such a request, and baggage if it is propagated, still reach downstream services.
// [WithVerifier] drops the debug flag too.
func Untrusted(verify func(trace.TraceID) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		// otelhttp has put the extracted span context into the request's context. A local span
		// there belongs to this process.
		sc := trace.SpanContextFromContext(r.Context())
		if !sc.IsRemote() || !sc.HasTraceID() {
			return false
		}
		return verify == nil || !verify(sc.TraceID())
	}
}
