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
// A trace ID from the internet can be anything. A verifier, such as traceid's, reports which IDs
// look like this fleet's: use it with [Untrusted] at the edge, where otelhttp starts a new trace
// with a link to the caller's span, or with [WithVerifier], which ignores the headers of a refused
// request. [RemoveContext] is for reverse proxies. docs/security.md compares them. All are hints of
// origin, not authentication: anyone who has seen an ID can send it again.
//
// traceid's verifier rejects every 64-bit B3 trace ID without x-trace-id.
//
// # Registration
//
// With contrib's autoprop and OTEL_PROPAGATORS=tracecontext,baggage,xtraceid (no spaces; the
// propagator listed last wins):
//
//	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
//	otel.SetTextMapPropagator(autoprop.NewTextMapPropagator())
//
// Register the name once: a second registration panics.
package xtraceid
