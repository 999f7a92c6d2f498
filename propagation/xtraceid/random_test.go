package xtraceid

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The flag is set only where a trace begins.
func TestWithRandomFlag(t *testing.T) {
	const (
		id   = "32d1f0a9c8000005a1b2c3d4e5f60718"
		span = "53995c3f42cd8ad8"
	)
	tid, err := trace.TraceIDFromHex(id)
	if err != nil {
		t.Fatal(err)
	}
	local := trace.ContextWithSpanContext(t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: trace.SpanID{1}}))
	refuse := WithVerifier(func(trace.TraceID) bool { return false })
	for _, c := range []struct {
		name string
		ctx  context.Context
		in   propagation.MapCarrier
		opts []Option
		want bool
	}{
		{"no headers", t.Context(), nil, []Option{WithRandomFlag()}, true},
		{"without the option", t.Context(), nil, nil, false},
		{"a malformed ID", t.Context(), propagation.MapCarrier{"x-trace-id": "1"}, []Option{WithRandomFlag()}, true},
		{"a decision without IDs", t.Context(), propagation.MapCarrier{"b3": "1"}, []Option{WithRandomFlag()}, true},
		{"a refused ID", t.Context(), propagation.MapCarrier{"x-trace-id": id}, []Option{WithRandomFlag(), refuse}, true},
		{"an ID alone", t.Context(), propagation.MapCarrier{"x-trace-id": id}, []Option{WithRandomFlag()}, false},
		{"an ID and B3", t.Context(), propagation.MapCarrier{"x-trace-id": id, "b3": id + "-" + span + "-1"}, []Option{WithRandomFlag()}, false},
		{"B3", t.Context(), propagation.MapCarrier{"b3": id + "-" + span + "-1"}, []Option{WithRandomFlag()}, false},
		{"a span in the context", local, nil, []Option{WithRandomFlag()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(c.opts...)
			ctx := p.Extract(c.ctx, c.in)
			if got := trace.SpanContextFromContext(ctx).TraceFlags().IsRandom(); got != c.want {
				t.Errorf("random flag %v, want %v", got, c.want)
			}
			if !c.want {
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
	const id, dashed = "32d1f0a9c8000005a1b2c3d4e5f60718", "32d1f0a9-c800-0005-a1b2-c3d4e5f60718"
	for _, c := range []struct {
		name, value string
		opts        []Option
		want        bool
	}{
		{"dashes", dashed, []Option{WithDashes()}, true},
		{"not by default", dashed, nil, false},
		{"digits", id, []Option{WithDashes()}, true},
		{"upper case", "32D1F0A9-C800-0005-A1B2-C3D4E5F60718", []Option{WithDashes()}, true},
		{"the same twice", dashed + ", " + id, []Option{WithDashes()}, true},
		{"two IDs", dashed + ",42d1f0a9-c800-0005-a1b2-c3d4e5f60718", []Option{WithDashes()}, false},
		{"dashes elsewhere", "32d1f0a9c800-0005-a1b2-c3d4e5f6071-8", []Option{WithDashes()}, false},
		{"one dash too many", "32d1f0a9-c800-0005-a1b2-c3d4e5f6071-", []Option{WithDashes()}, false},
		{"braces", "{" + dashed + "}", []Option{WithDashes()}, false},
		{"all zero", "00000000-0000-0000-0000-000000000000", []Option{WithDashes()}, false},
		{"too short", "32d1f0a9", []Option{WithDashes()}, false},
		{"one digit too many", dashed + "0", []Option{WithDashes()}, false},
		{"no first dash", dashed[:8] + "0" + dashed[9:], []Option{WithDashes()}, false},
		{"no second dash", dashed[:13] + "0" + dashed[14:], []Option{WithDashes()}, false},
		{"no third dash", dashed[:18] + "0" + dashed[19:], []Option{WithDashes()}, false},
		{"no fourth dash", dashed[:23] + "0" + dashed[24:], []Option{WithDashes()}, false},
		{"dashes only", "------------------------------------", []Option{WithDashes()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(append(c.opts, WithHeader("x-request-id"))...)
			ctx := p.Extract(t.Context(), propagation.MapCarrier{"x-request-id": c.value})
			sc := trace.SpanContextFromContext(ctx)
			if got := sc.TraceID().String() == id; got != c.want || sc.HasTraceID() != c.want {
				t.Errorf("trace %s, want an ID: %v", sc.TraceID(), c.want)
			}
			out := propagation.MapCarrier{}
			p.Inject(ctx, out)
			if c.want && out["x-request-id"] != id {
				t.Errorf("injected %v, want 32 digits", out)
			}
		})
	}
}

// Only contexts without a trace get the flag, and no other flag.
func TestContextWithRandomFlag(t *testing.T) {
	for name, c := range map[string]struct {
		sc   trace.SpanContext
		want trace.TraceFlags
	}{
		"nothing":       {trace.SpanContext{}, trace.FlagsRandom},
		"sampled":       {trace.SpanContext{}.WithTraceFlags(trace.FlagsSampled), trace.FlagsSampled | trace.FlagsRandom},
		"trace ID only": {trace.SpanContext{}.WithTraceID(trace.TraceID{1}), 0},
		"span ID only":  {trace.SpanContext{}.WithSpanID(trace.SpanID{1}), 0},
	} {
		ctx := ContextWithRandomFlag(trace.ContextWithSpanContext(t.Context(), c.sc))
		if got := trace.SpanContextFromContext(ctx).TraceFlags(); got != c.want {
			t.Errorf("%s: flags %s, want %s", name, got, c.want)
		}
	}
}
