package xtraceid_test

import (
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// FuzzExtract compares Extract with options, or into the context of a span, with Extract without
// either, which TestExtract compares with the table.
func FuzzExtract(f *testing.F) {
	add := func(h http.Header) {
		x := append(h.Values("x-trace-id"), "", "")
		for opts := range byte(16) {
			f.Add(x[0], x[1], h.Get("b3"), h.Get("X-B3-TraceId"), h.Get("X-B3-SpanId"), h.Get("X-B3-ParentSpanId"), h.Get("X-B3-Sampled"), h.Get("X-B3-Flags"), opts)
		}
	}
	for _, c := range rows {
		add(headers(c.headers...))
	}
	for _, v := range []string{traceT + "-" + spanS, low64 + "-" + spanS, strings.Repeat("-", 33), strings.Repeat("0", 49)} {
		add(headers("x-trace-id", traceT, "b3", v))
	}

	f.Fuzz(func(t *testing.T, x1, x2, single, id, span, parent, sampled, flags string, opts byte) {
		h := http.Header{}
		for _, field := range [][2]string{
			{"x-trace-id", x1}, {"x-trace-id", x2}, {"b3", single}, {"X-B3-TraceId", id}, {"X-B3-SpanId", span},
			{"X-B3-ParentSpanId", parent}, {"X-B3-Sampled", sampled}, {"X-B3-Flags", flags},
		} {
			if field[1] != "" {
				h.Add(field[0], field[1])
			}
		}
		deferredSampled, refuse := opts&1 != 0, opts&2 != 0
		open := sampled == "" && flags != "1"
		if trace.SpanContextFromContext(extract(headers("b3", single))).IsValid() {
			open = strings.Count(single, "-") == 1
		}
		var here trace.SpanContext
		if opts&4 != 0 {
			here = spanContext(t, traceT, spanP, opts&8 != 0)
		}

		options := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return !refuse })}
		if deferredSampled {
			options = append(options, xtraceid.WithDeferredSampled())
		}
		p := xtraceid.New(options...)
		ctx := p.Extract(trace.ContextWithSpanContext(t.Context(), here), propagation.HeaderCarrier(h))
		got, want := trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(extract(h))
		switch {
		case refuse:
			want = trace.SpanContext{}
		case !want.HasTraceID(), want.TraceID() == here.TraceID() && (!want.HasSpanID() || want.SpanID() == here.SpanID()):
			want = here
		case deferredSampled && want.HasSpanID() && open:
			want = want.WithTraceFlags(trace.FlagsSampled)
		}
		if !got.Equal(want) {
			t.Errorf("%v, options %b:\ngot  %s\nwant %s", h, opts, show(got), show(want))
		}

		if !got.HasTraceID() && !got.Equal(trace.SpanContext{}) {
			t.Errorf("a span context without a trace ID: %s", show(got))
		}
		if got.HasTraceID() && !got.IsRemote() {
			t.Errorf("not remote: %s", show(got))
		}
		if got.HasTraceID() && !got.HasSpanID() && x1+x2 == "" {
			t.Errorf("no parent, although there is no x-trace-id: %s", show(got))
		}

		// The extracted span context can be forwarded.
		out := propagation.MapCarrier{}
		p.Inject(ctx, out)
		if got.HasTraceID() && out["x-trace-id"] != got.TraceID().String() || !got.HasTraceID() && len(out) > 0 {
			t.Errorf("forwarded %v for %s", out, show(got))
		}
		for k, v := range out {
			if v == "" {
				t.Errorf("forwarded an empty %s", k)
			}
		}
	})
}
