package xtraceid_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// recorder is a span that records links.
type recorder struct {
	trace.Span
	links []trace.Link
}

func (r *recorder) AddLink(l trace.Link) { r.links = append(r.links, l) }

// Each rule and several traceparents, through the propagators that README recommends. The verifier
// is called once, with the resulting trace ID, and nothing that it refuses is used or sent: not
// even what another propagator has read. Of a plausible trace the ID is used.
func TestUntrusted(t *testing.T) {
	const traceW = "4bf92f3577b34da6a3ce929d0e0e4736" // only in traceparent
	parents := []string{
		"", "00-" + traceT + "-" + spanS + "-01", "00-" + traceT + "-" + spanP + "-03",
		"00-" + traceU + "-" + spanS + "-01", "00-" + traceW + "-" + spanS + "-01",
	}
	yes := func(trace.TraceID) bool { return true }
	for _, c := range rules(t) {
		for _, parent := range parents {
			in := propagation.HeaderCarrier(c.Incoming.Clone())
			in.Set("traceparent", parent)
			in.Set("tracestate", "v=1")
			p := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
				propagation.Baggage{}, c.propagator())
			trusted := p.Extract(t.Context(), in)
			came := trace.SpanContextFromContext(trusted)
			var asked []trace.TraceID
			ask := func(id trace.TraceID) bool { asked = append(asked, id); return false }
			for _, u := range []struct {
				verified, plausible func(trace.TraceID) bool
				want                trace.SpanContext
			}{
				{yes, nil, came},
				{ask, yes, spanContext(t, came.TraceID().String(), "", false)},
				{nil, ask, trace.SpanContext{}},
				{nil, nil, trace.SpanContext{}},
			} {
				asked = nil
				q := xtraceid.Untrusted(p, xtraceid.Trust{Context: u.verified,
					TraceID: u.plausible})
				ctx := q.Extract(t.Context(), in)
				got := trace.SpanContextFromContext(ctx)
				if !came.HasTraceID() {
					u.want = trace.SpanContext{}
				}
				if len(asked) > 1 || len(asked) == 1 && asked[0] != came.TraceID() {
					t.Errorf("%s, %s: %v were asked for, want %s", c.Name, parent, asked,
						came.TraceID())
				}
				if !got.Equal(u.want) {
					t.Errorf("%s, %s: got %s, want %s", c.Name, parent, show(got), show(u.want))
				}
				span := &recorder{Span: trace.SpanFromContext(local(t, traceT, spanP, true))}
				xtraceid.AddLink(trace.ContextWithSpan(ctx, span))
				linked := len(span.links) == 1 && span.links[0].SpanContext.Equal(came)
				if linked != (came.IsValid() && !came.Equal(u.want)) {
					t.Errorf("%s, %s: links %v, want %s", c.Name, parent, span.links, show(came))
				}
				if came.Equal(u.want) {
					continue
				}
				// The debug flag is not sent, nor is the decision left open.
				id := came.TraceID().String()
				here := trace.SpanContextFromContext(local(t, id, spanP, false))
				plain := c.propagator()
				want := injected(local(t, id, spanP, false), plain)
				out := injected(trace.ContextWithSpanContext(ctx, here), plain)
				if !maps.Equal(out, want) {
					t.Errorf("%s, %s: sent %v, want %v", c.Name, parent, out, want)
				}
			}
		}
	}
}

// Headers of each format, as its documentation or its client spells them.
var contextHeaders = []string{
	"traceparent", "tracestate", "baggage",
	"b3", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "X-B3-Flags",
	"uber-trace-id", "uberctx-user", "jaeger-debug-id", "jaeger-baggage",
	"ot-tracer-traceid", "ot-tracer-spanid", "ot-tracer-sampled", "ot-baggage-user",
	"x-ot-span-context",
	"grpc-trace-bin", "grpc-tags-bin",
	"X-Amzn-Trace-Id", "X-Cloud-Trace-Context",
	"Request-Id", "Request-Context", "Correlation-Context", "x-ms-request-root-id",
	"x-datadog-trace-id", "x-datadog-parent-id", "x-datadog-sampling-priority",
	"x-datadog-origin", "x-datadog-tags",
	"sw3", "sw6", "sw8", "sw8-correlation", "sw8-x",
	"Pinpoint-TraceID", "Pinpoint-SpanID", "Pinpoint-pSpanID", "Pinpoint-Sampled",
	"EagleEye-TraceID", "EagleEye-RpcID",
	"newrelic", "X-NewRelic-ID", "X-NewRelic-Transaction",
	"X-dynaTrace", "elastic-apm-traceparent", "singularityheader",
	"X-INSTANA-T", "X-INSTANA-S", "X-INSTANA-L",
	"sentry-trace", "X-Honeycomb-Trace",
	"X-Trace", "X-Trace-Options", "X-Trace-Options-Signature",
	"x-wtap-mst", "x-wtap-po", "x-wtap-inf", "X-Tingyun", "X-Tingyun-Id", "X-Tingyun-Data",
	"x-envoy-force-trace", "x-client-trace-id", "l5d-ctx-trace", "l5d-sample",
	"x-trace-id",
}

// Each of them is removed, in any case and as metadata of gRPC; nothing else is. Each pattern of
// the list is needed.
func TestRemoveContext(t *testing.T) {
	kept := http.Header{}
	for _, name := range []string{
		"X-Request-Id", "Authorization", "X-Trace-Id-Extra", "Sw9", "B34", "Request-Idle",
		"X-Forwarded-For", "Traceparent2", "Server-Timing", "X_Request_Id", "XTrace-Id", "X-Wtap",
		"Trace-Id", "X-Ting-Yun", "Uber-Trace-Id2", "Baggage-Claim", "X-Tracer",
		"My-X-B3-TraceId", "X-Sw8-Id", "My-Uberctx-User", "X-Ot-Baggage-User", "Re-Sentry-Trace",
	} {
		kept.Set(name, "1")
	}
	all := maps.Clone(kept)
	for _, name := range contextHeaders {
		all[name] = []string{"1"}
		all[strings.ToUpper(name)] = []string{"1"}
		all.Set(name, "1")
		all[strings.ReplaceAll(name, "-", "_")] = []string{"1"}
	}
	if xtraceid.RemoveContext(all); !maps.EqualFunc(all, kept, slices.Equal) {
		t.Errorf("kept %v, want %v", all, kept)
	}
	for _, pattern := range xtraceid.ContextHeaders {
		prefix, _ := strings.CutSuffix(pattern, "*")
		if !slices.ContainsFunc(contextHeaders, func(name string) bool {
			return strings.HasPrefix(strings.ToLower(name), prefix)
		}) {
			t.Errorf("no header for the pattern %s", pattern)
		}
	}
}
