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
	const sampled, random = trace.FlagsSampled, trace.FlagsRandom
	with := func(sc trace.SpanContext) context.Context { return trace.ContextWithSpanContext(t.Context(), sc) }
	refuse := xtraceid.WithVerifier(func(trace.TraceID) bool { return false })
	for _, c := range []struct {
		name string
		ctx  context.Context
		in   propagation.MapCarrier
		opts []xtraceid.Option // besides WithRandomFlag
		want trace.TraceFlags
	}{
		{"no headers", t.Context(), nil, nil, random},
		{"a malformed ID", t.Context(), propagation.MapCarrier{"x-trace-id": "1"}, nil, random},
		{"a refused ID", t.Context(), propagation.MapCarrier{"x-trace-id": traceT}, []xtraceid.Option{refuse}, random},
		{"an ID alone", t.Context(), propagation.MapCarrier{"x-trace-id": traceT}, nil, 0},
		{"B3", t.Context(), propagation.MapCarrier{"b3": traceT + "-" + spanS + "-0"}, nil, 0},
		{"a span in the context", local(t, traceT, spanS, true), nil, nil, sampled},
		{"a span ID in the context", with(trace.SpanContext{}.WithSpanID(trace.SpanID{1})), nil, nil, 0},
		{"a flag in the context", with(trace.SpanContext{}.WithTraceFlags(sampled)), nil, nil, sampled | random},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := xtraceid.New(append(c.opts, xtraceid.WithRandomFlag())...)
			ctx := p.Extract(c.ctx, c.in)
			if got := trace.SpanContextFromContext(ctx).TraceFlags(); got != c.want {
				t.Errorf("flags %s, want %s", got, c.want)
			}
			if !c.want.IsRandom() {
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

func TestWithDashes(t *testing.T) {
	const dashed = "32d1f0a9-c800-0005-a1b2-c3d4e5f60718"
	dashes := []xtraceid.Option{xtraceid.WithDashes()}
	for _, c := range []struct {
		name, value string
		opts        []xtraceid.Option
		want        bool
	}{
		{"dashes", dashed, dashes, true},
		{"not by default", dashed, nil, false},
		{"short", "1", dashes, false},
		{"the same twice", dashed + ", " + traceT, dashes, true},
		{"two IDs", dashed + ",42d1f0a9-c800-0005-a1b2-c3d4e5f60718", dashes, false},
		{"no first dash", dashed[:8] + "0" + dashed[9:], dashes, false},
		{"no second dash", dashed[:13] + "0" + dashed[14:], dashes, false},
		{"no third dash", dashed[:18] + "0" + dashed[19:], dashes, false},
		{"no fourth dash", dashed[:23] + "0" + dashed[24:], dashes, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := xtraceid.New(append(c.opts, xtraceid.WithHeader("x-request-id"))...)
			ctx := p.Extract(t.Context(), propagation.MapCarrier{"x-request-id": c.value})
			sc := trace.SpanContextFromContext(ctx)
			if got := sc.TraceID().String() == traceT; got != c.want || sc.HasTraceID() != c.want {
				t.Errorf("trace %s, want an ID: %v", sc.TraceID(), c.want)
			}
			out := propagation.MapCarrier{}
			p.Inject(ctx, out)
			if c.want && out["x-request-id"] != traceT {
				t.Errorf("injected %v, want 32 digits", out)
			}
		})
	}
}
