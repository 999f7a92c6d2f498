package xtraceid

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// ContextWithRandomFlag returns a context in which the next root span gets the random flag of W3C
// Trace Context level 2: traceparent ends in 03 instead of 01, and samplers may rely on the low 56
// bits of the trace ID. Children and other services keep the flag. It is for roots that are not
// started by a request, such as those of jobs; for requests use [WithRandomFlag]. Use it only if
// this process's ID generator returns trace IDs whose low 56 bits are random, as traceflake's do.
//
//	ctx, span := tracer.Start(xtraceid.ContextWithRandomFlag(ctx), "nightly job")
//
// OpenTelemetry's SDK (v1.47) does not query its generator, but a root inherits the flags of a
// span context without IDs. [trace.WithNewRoot] drops them, and so does [Untrusted] with a refused
// request: such roots do not get the flag. OpenTelemetry for Go before v1.42 refuses a
// traceparent that ends in 03: set the flag when no such service is left.
//
// A context that is already in a trace is returned unchanged: its trace ID may be from outside.
func ContextWithRandomFlag(ctx context.Context) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if sc.HasTraceID() || sc.HasSpanID() {
		return ctx
	}
	flags := sc.TraceFlags() | flagRandom
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{}.WithTraceFlags(flags))
}

// flagRandom is trace.FlagsRandom, which OpenTelemetry has only had since v1.42.
const flagRandom trace.TraceFlags = 0x02
