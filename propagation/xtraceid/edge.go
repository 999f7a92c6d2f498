package xtraceid

import (
	"net/http"
	"slices"
	"strings"

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
// This is a hint of origin, not authentication. The span context is not used, and B3's debug flag
// is not sent on. Baggage still reaches downstream services; a reverse proxy also forwards the
// headers themselves unless it calls [RemoveContext].
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

// RemoveContext deletes from h every header with which a caller can influence a trace: IDs,
// sampling decisions and baggage in the formats of W3C, OpenTelemetry's propagators and other
// tracing systems, and [DefaultHeader]. A reverse proxy at an untrusted edge calls it for the
// outgoing request, before its transport writes headers of its own. h is an [http.Header] or
// gRPC's metadata.MD. Request IDs such as X-Request-Id stay.
func RemoveContext(h map[string][]string) {
	for name := range h {
		if isContext(strings.ToLower(name)) {
			delete(h, name)
		}
	}
}

// isContext reports whether a header belongs to a propagation format. The name is in lower case.
func isContext(name string) bool {
	return slices.ContainsFunc(contextHeaders, func(pattern string) bool {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		return name == prefix || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// contextHeaders are the headers of all propagation formats, in lower case. A pattern that ends in
// an asterisk is a prefix.
var contextHeaders = []string{
	DefaultHeader,
	"traceparent", "tracestate", "baggage", // W3C
	"b3", "x-b3-*",
	"uber-trace-id", "uberctx-*", "jaeger-*", // Jaeger
	"ot-tracer-*", "ot-baggage-*", "x-ot-span-context", // OpenTracing
	"grpc-trace-bin", "grpc-tags-bin", // OpenCensus
	"x-amzn-trace-id", // AWS X-Ray
	"x-cloud-trace-context",
	"request-id", "request-context", "correlation-context", "x-ms-request-root-id", // .NET
	"x-datadog-*",
	"sw3", "sw6", "sw8*", // SkyWalking
	"pinpoint-*",
	"eagleeye-*",
	"newrelic", "x-newrelic-*",
	"x-dynatrace*",
	"elastic-apm-traceparent",
	"singularityheader", // AppDynamics
	"x-instana-*",
	"sentry-trace",
	"x-honeycomb-trace",
	"x-trace", "x-trace-options*", // SolarWinds
	"x-envoy-force-trace", "x-client-trace-id", // Envoy: force a trace
	"l5d-ctx-*", "l5d-sample", // Linkerd
}
