package xtraceid_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func TestUntrusted(t *testing.T) {
	ours := traceID(t, traceT)
	verify := func(id trace.TraceID) bool {
		if !id.IsValid() {
			t.Error("verify was called without an ID")
		}
		return id == ours
	}
	cases := []struct {
		name   string
		sc     trace.SpanContext
		verify func(trace.TraceID) bool
		want   bool
	}{
		{"ours", spanContext(t, traceT, spanS, true), verify, false},
		{"another's", spanContext(t, traceU, spanS, true), verify, true},
		{"another's, no parent", spanContext(t, traceU, "", false), verify, true},
		{"no trace ID", trace.SpanContext{}, verify, false},
		{"no trace ID, remote", trace.SpanContext{}.WithRemote(true), verify, false},
		{"span of this process", spanContext(t, traceU, spanS, true).WithRemote(false), verify,
			false},
		{"no verifier", spanContext(t, traceT, spanS, true), nil, true},
	}
	for _, c := range cases {
		r := new(http.Request).WithContext(trace.ContextWithSpanContext(t.Context(), c.sc))
		if got := xtraceid.Untrusted(c.verify)(r); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
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
	"x-envoy-force-trace", "x-client-trace-id", "l5d-ctx-trace", "l5d-sample",
	"x-trace-id",
}

// Each of them is removed, in any case and as metadata of gRPC; nothing else is. Each pattern of
// the list is needed.
func TestRemoveContext(t *testing.T) {
	kept := http.Header{}
	for _, name := range []string{
		"X-Request-Id", "Authorization", "X-Trace-Id-Extra", "Sw9", "B34", "Request-Idle",
		"X-Forwarded-For", "Traceparent2", "Server-Timing",
	} {
		kept.Set(name, "1")
	}
	all := maps.Clone(kept)
	for _, name := range contextHeaders {
		all[name] = []string{"1"}
		all[strings.ToUpper(name)] = []string{"1"}
		all.Set(name, "1")
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
