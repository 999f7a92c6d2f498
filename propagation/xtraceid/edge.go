package xtraceid

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Trust decides by trace ID what of a request is used. The functions are called for each request
// with a trace ID and must be safe for concurrent use; nil accepts no ID.
type Trust struct {
	// Context accepts everything: trace ID, parent span, sampling decision and debug flag. It is
	// for IDs that only trusted services generate, such as those that a verifier of package traceid
	// accepts.
	Context func(trace.TraceID) bool
	// TraceID accepts the trace ID alone, as if x-trace-id had come alone: the root sampler
	// decides. It is called for IDs that Context refuses.
	TraceID func(trace.TraceID) bool
}

// Untrusted returns a propagator for requests of callers that are not trusted. It injects like p,
// and of what p extracts it uses what t accepts. If t accepts nothing, a new trace starts. Unless t
// accepts the whole context, [AddLink] adds a link to the caller's span, if the request names one.
//
//	edge := xtraceid.Untrusted(otel.GetTextMapPropagator(),
//		xtraceid.Trust{Context: verifier.Verify})
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "edge", otelhttp.WithPropagators(edge))
//
// p is a propagator of any format, or a composite propagator. Baggage still reaches downstream
// services; a reverse proxy also forwards the headers themselves unless it calls [RemoveContext].
// This is a hint of origin, not authentication.
func Untrusted(p propagation.TextMapPropagator, t Trust) propagation.TextMapPropagator {
	return untrusted{p, t}
}

type untrusted struct {
	propagation.TextMapPropagator
	trust Trust
}

func (u untrusted) Extract(
	ctx context.Context, carrier propagation.TextMapCarrier,
) context.Context {
	here := trace.SpanFromContext(ctx)
	found := new(diagnosis)
	ctx = u.TextMapPropagator.Extract(context.WithValue(ctx, diagnosisKey{}, found), carrier)
	found.ended = true
	sc := trace.SpanContextFromContext(ctx)
	switch {
	case !sc.IsRemote() || !sc.HasTraceID():
		return ctx
	case accepts(u.trust.Context, sc):
		if found.lost != nil {
			found.lost.reportLost()
		}
		return ctx
	case accepts(u.trust.TraceID, sc):
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.SpanContext{}.WithTraceID(sc.TraceID()))
	case here.SpanContext().IsRemote():
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	default:
		ctx = trace.ContextWithSpan(ctx, here) // one of this process
	}
	// A debug flag or an open decision must not reach the trace.
	ctx = withB3(ctx, trace.TraceID{}, undecided)
	if sc.IsValid() {
		ctx = context.WithValue(ctx, linkKey{}, sc)
	}
	return ctx
}

func accepts(f func(trace.TraceID) bool, sc trace.SpanContext) bool {
	return f != nil && f(sc.TraceID())
}

// linkKey is the key of the caller's span context that [Untrusted] has not used.
type linkKey struct{}

// AddLink adds to the span of ctx a link to the caller's span that [Untrusted] has not used, if
// there is one. [ResponseHandler] and the interceptors of package xtraceidgrpc do that.
func AddLink(ctx context.Context) {
	if sc, ok := ctx.Value(linkKey{}).(trace.SpanContext); ok {
		trace.SpanFromContext(ctx).AddLink(trace.Link{SpanContext: sc})
	}
}

// RemoveContext deletes from h every header with which a caller can influence a trace: IDs,
// sampling decisions and baggage in the formats of W3C, OpenTelemetry's propagators and other
// tracing systems, and [DefaultHeader]. An underscore counts as a dash, because servers behind CGI,
// WSGI, Rack or PHP do not distinguish them. A reverse proxy at an untrusted edge calls it for the
// outgoing request, before its transport writes headers of its own. h is an [http.Header] or
// gRPC's metadata.MD. Request IDs such as X-Request-Id stay.
func RemoveContext(h map[string][]string) {
	for name := range h {
		if isContext(name) {
			delete(h, name)
		}
	}
}

// isContext reports whether a header belongs to a propagation format.
func isContext(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
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
	"x-wtap-*",                                 // WhaTap
	"x-tingyun*",                               // Tingyun
	"x-envoy-force-trace", "x-client-trace-id", // Envoy: force a trace
	"l5d-ctx-*", "l5d-sample", // Linkerd
}
