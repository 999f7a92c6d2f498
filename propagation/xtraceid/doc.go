// Package xtraceid propagates the trace ID in an x-trace-id header alongside B3
// (https://github.com/openzipkin/b3-propagation): x-trace-id contains the trace ID, B3 the parent
// span and the sampling decision.
//
//	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
//		propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New()))
//
// B3 is read in both of its encodings and, unless [WithB3Encoding] is used, written as separate
// X-B3 headers; do not list a b3 propagator as well. Inject writes x-trace-id and B3.
// docs/headers.md lists how incoming headers are read.
//
// If x-trace-id has no usable parent, the context holds a remote span context with a trace ID and
// a zero span ID: the SDK starts a span without a parent in that trace.
//
// A trace ID from the internet can be anything. At the edge, [Untrusted] uses only what a verifier,
// such as traceid's, accepts, and [ResponseHandler] adds a link to the caller's span instead of
// continuing the trace. x-trace-id alone contains no span to link to: to keep it, record the header
// as the attribute http.request.header.x-trace-id. [RemoveContext] is for reverse proxies. All of
// these check origin, they do not authenticate: anyone who has seen an ID can send it again.
//
// With contrib's autoprop and OTEL_PROPAGATORS=tracecontext,baggage,xtraceid (no spaces; the
// propagator listed last wins):
//
//	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
//	otel.SetTextMapPropagator(autoprop.NewTextMapPropagator())
//
// Register the name once: a second registration panics.
package xtraceid
