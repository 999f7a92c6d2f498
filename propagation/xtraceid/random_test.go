package xtraceid_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The flag is set only where a trace begins. Other flags are kept.
func TestWithRandomFlag(t *testing.T) {
	const sampled, random = trace.FlagsSampled, trace.TraceFlags(2)
	inside := func(sc trace.SpanContext) context.Context {
		return trace.ContextWithSpanContext(t.Context(), sc)
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		in   propagation.MapCarrier
		want trace.TraceFlags
	}{
		{"no headers", t.Context(), nil, random},
		{"a malformed ID", t.Context(), propagation.MapCarrier{"x-trace-id": "1"}, random},
		{"an ID alone", t.Context(), propagation.MapCarrier{"x-trace-id": traceT}, 0},
		{"B3", t.Context(), propagation.MapCarrier{"b3": traceT + "-" + spanS + "-0"}, 0},
		{"a span in the context", local(t, traceT, spanS, true), nil, sampled},
		{"a span ID in the context", inside(trace.SpanContext{}.WithSpanID(trace.SpanID{1})),
			nil, 0},
		{"a flag in the context", inside(trace.SpanContext{}.WithTraceFlags(sampled)), nil,
			sampled | random},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := xtraceid.New(xtraceid.WithRandomFlag())
			ctx := p.Extract(c.ctx, c.in)
			if got := trace.SpanContextFromContext(ctx).TraceFlags(); got != c.want {
				t.Errorf("flags %s, want %s", got, c.want)
			}
			if c.want&random == 0 {
				return
			}
			// The flag alone is not sent.
			out := propagation.MapCarrier{}
			p.Inject(ctx, out)
			propagation.TraceContext{}.Inject(ctx, out)
			if len(out) != 0 {
				t.Errorf("injected %v", out)
			}
		})
	}
}
