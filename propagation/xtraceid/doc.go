// Package xtraceid propagates the trace ID in an x-trace-id header alongside B3
// (https://github.com/openzipkin/b3-propagation): x-trace-id names the trace, B3 names the parent
// span and carries the sampling decision. B3 is read in both of its encodings and, unless
// [WithB3Encoding] is used, written as separate X-B3 headers, by
// go.opentelemetry.io/contrib/propagators/b3; do not list a b3 propagator as well.
//
// # How incoming headers are read
//
//	incoming                                    result
//	x-trace-id and B3 with a 64-bit trace ID    trace = x-trace-id, parent span and
//	                                            sampling from B3
//	x-trace-id and B3 with the same trace ID    as both say
//	x-trace-id and B3 with another 128-bit      trace = x-trace-id; that parent belongs
//	trace ID                                    elsewhere: B3 is not used
//	x-trace-id alone                            the trace continues without a parent
//	B3 alone                                    as B3 says
//	x-trace-id malformed                        x-trace-id is ignored, B3 is used
//	a verifier refuses the resulting trace ID   nothing is used: a new trace starts
//
// A 64-bit ID in B3 need not be the low half of x-trace-id: old clients generate it independently.
// A B3 trace ID whose first 16 digits are zeros is a padded 64-bit one.
//
// x-trace-id is malformed unless it is 32 hex digits, not all zero, in upper or lower case;
// outgoing IDs are lower case. A repeated header, or the comma-separated list into which an
// intermediary joins one, is malformed unless all values are the same ID. Values other than the
// first are seen only if the carrier is a [propagation.ValuesGetter], as
// [propagation.HeaderCarrier] is.
//
// # No parent
//
// If the trace continues without a parent, the context holds a remote span context with a trace
// ID and a zero span ID. Its IsValid is false. The SDK keeps the trace ID, starts a span without
// a parent, and its ParentBased sampler calls the root sampler. If the context is already in the
// trace that x-trace-id names, because another propagator or an outer handler put it there, its
// span stays the parent. B3's sampling decision and debug flag belong to the span that B3 names:
// without one they are not used.
//
// # How outgoing headers are written
//
// Inject writes B3 and x-trace-id. With no span in the context it writes nothing; the b3 package
// alone would send "do not sample". A service without an SDK forwards what it received: a trace ID
// without a parent is sent as x-trace-id alone, so that the trace is not lost there.
//
// B3 without a sampling field leaves the decision to the receiver. The SDK's ParentBased sampler
// reads it as "drop", which loses whole traces from clients that send none: [WithDeferredSampled]
// treats it as "sampled". Once this service has started a span, its decision is sent; the b3
// package alone would leave it open again.
//
// # Untrusted requests
//
// A trace ID from the internet can be anything. A verifier (for example traceid's) reports which
// IDs look like ours. There are two places to use it:
//
//   - [Untrusted], at the edge, with otelhttp's WithPublicEndpointFn: a request with a foreign ID
//     starts a new trace with a link to the caller's span, which identifies the caller later.
//     x-trace-id alone names no span to link to: to keep it, record the header as the attribute
//     http.request.header.x-trace-id. B3's debug flag stays with the refused trace.
//   - [WithVerifier]: Extract ignores the headers of a refused request and removes what the
//     propagators listed before it have found, so list it last. Use it if refused callers must not
//     influence the trace at all, or if there is no otelhttp handler, as with message queues.
//     Baggage is left to its own propagator.
//
// A reverse proxy also forwards the headers themselves, to services that may read any of them:
// [RemoveContext] deletes those of every known format.
//
// traceid's verifier always rejects a 64-bit B3 trace ID without x-trace-id.
//
// Both are hints of origin, not authentication: anyone who has seen one of our IDs can send it
// again. Protect what matters with credentials.
//
// # Registration
//
// With contrib's autoprop, and OTEL_PROPAGATORS=xtraceid (names are separated by
// commas, without spaces) in the environment:
//
//	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
//	otel.SetTextMapPropagator(autoprop.NewTextMapPropagator())
//
// Register the name once: a second registration panics. If tracecontext is listed too, the
// propagator listed last wins; list xtraceid last.
package xtraceid
