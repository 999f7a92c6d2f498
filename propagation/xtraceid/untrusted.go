package xtraceid

import (
	"net/http"

	"go.opentelemetry.io/otel/trace"
)

// Untrusted returns a function for otelhttp's WithPublicEndpointFn. It is true for requests
// whose trace ID verify refuses; they start a new trace with a link to the span that the
// request names, if it names one. verify is called on each request with a trace ID and must
// be safe for concurrent use; a nil verify refuses every ID.
//
//	otelhttp.NewHandler(mux, "edge",
//		otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verifier.Verify)))
//
// A request that brings no trace ID is not untrusted: it starts a new trace anyway, or goes
// on in the span of a handler outside.
//
// This is a hint of origin, not authentication. Only the span context is left behind: the
// B3 debug flag of such a request, and baggage where that is propagated, still reach
// the services behind. [WithVerifier] leaves the debug flag behind, too.
func Untrusted(verify func(trace.TraceID) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		// otelhttp has put what it extracted into the request's context. A local span there
		// is one of this process.
		sc := trace.SpanContextFromContext(r.Context())
		if !sc.IsRemote() || !sc.HasTraceID() {
			return false
		}
		return verify == nil || !verify(sc.TraceID())
	}
}
