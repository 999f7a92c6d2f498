package xtraceid_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// FuzzExtract compares Extract with a second implementation of the table, in expect.
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
		in := input{single: single, id: id, span: span, parent: parent, sampled: sampled, flags: flags,
			deferredSampled: opts&1 != 0, refuse: opts&2 != 0}
		for _, v := range []string{x1, x2} {
			if v != "" {
				in.x = append(in.x, v)
			}
		}
		if opts&4 != 0 {
			in.here = spanContext(t, traceT, spanP, opts&8 != 0)
		}

		options := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return !in.refuse })}
		if in.deferredSampled {
			options = append(options, xtraceid.WithDeferredSampled())
		}
		start := context.Background()
		if in.here.IsValid() {
			start = trace.ContextWithSpanContext(start, in.here)
		}
		p := xtraceid.New(options...)
		ctx := p.Extract(start, propagation.HeaderCarrier(in.header()))
		got, want := trace.SpanContextFromContext(ctx), in.expect()
		if !got.Equal(want) {
			t.Errorf("%+v:\ngot  %s\nwant %s", in, show(got), show(want))
		}

		// Invariants beyond the table.
		if !got.HasTraceID() && !got.Equal(trace.SpanContext{}) {
			t.Errorf("a span context without a trace ID: %s", show(got))
		}
		if got.HasTraceID() && !got.IsRemote() {
			t.Errorf("not remote: %s", show(got))
		}
		if got.HasTraceID() && !got.HasSpanID() && len(in.x) == 0 {
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

type input struct {
	x                                        []string
	single, id, span, parent, sampled, flags string
	deferredSampled, refuse                  bool
	here                                     trace.SpanContext
}

func (in input) header() http.Header {
	h := http.Header{}
	for _, v := range in.x {
		h.Add("x-trace-id", v)
	}
	for name, v := range map[string]string{
		"b3": in.single, "X-B3-TraceId": in.id, "X-B3-SpanId": in.span,
		"X-B3-ParentSpanId": in.parent, "X-B3-Sampled": in.sampled, "X-B3-Flags": in.flags,
	} {
		if v != "" {
			h.Set(name, v)
		}
	}
	return h
}

var (
	digits32 = regexp.MustCompile(`^[ \t]*([0-9a-fA-F]{32})[ \t]*$`)
	openB3   = regexp.MustCompile(`^([0-9a-f]{16}|[0-9a-f]{32})-[0-9a-f]{16}$`)
)

// named returns the trace ID that x-trace-id names.
func (in input) named() (id trace.TraceID) {
	seen := map[trace.TraceID]bool{}
	for _, v := range in.x {
		for _, part := range strings.Split(v, ",") {
			var one trace.TraceID
			if m := digits32.FindStringSubmatch(part); m != nil {
				if _, err := hex.Decode(one[:], []byte(m[1])); err != nil {
					panic(err)
				}
			}
			seen[one] = true
			id = one
		}
	}
	if len(seen) != 1 {
		return trace.TraceID{}
	}
	return id // zero if x-trace-id is zero
}

// b3 returns the span context of B3 alone.
func (in input) b3() trace.SpanContext {
	h := in.header()
	if in.deferredSampled {
		if in.sampled == "" && in.flags != "1" {
			h.Set("X-B3-Sampled", "1")
		}
		if openB3.MatchString(in.single) {
			h.Set("b3", in.single+"-1")
		}
	}
	return trace.SpanContextFromContext(b3.New().Extract(context.Background(), propagation.HeaderCarrier(h)))
}

// sampledAlone reports whether B3 has no IDs but is sampled.
func (in input) sampledAlone() bool {
	if in.single == "0" || in.single == "1" || in.single == "d" {
		return in.single != "0"
	}
	return in.id == "" && in.span == "" && (in.flags == "1" || in.sampled == "1" || strings.EqualFold(in.sampled, "true"))
}

func (in input) expect() trace.SpanContext {
	x, parent := in.named(), in.b3()
	cfg := trace.SpanContextConfig{TraceID: x, Remote: true}
	use := func() {
		cfg.SpanID, cfg.TraceFlags = parent.SpanID(), parent.TraceFlags()
	}
	b3ID := parent.TraceID().String()
	switch {
	case x.IsValid() && parent.IsValid():
		if b3ID[:16] == "0000000000000000" || b3ID == x.String() {
			use()
		}
	case x.IsValid():
		cfg.TraceFlags = trace.TraceFlags(0).WithSampled(in.sampledAlone())
	case parent.IsValid():
		cfg.TraceID = parent.TraceID()
		use()
	default:
		cfg = trace.SpanContextConfig{TraceID: in.here.TraceID(), SpanID: in.here.SpanID(),
			TraceFlags: in.here.TraceFlags(), Remote: in.here.IsRemote()}
	}
	if in.refuse {
		return trace.SpanContext{} // in.here is remote
	}
	if in.here.TraceID() == cfg.TraceID &&
		(!cfg.SpanID.IsValid() || in.here.IsRemote() && in.here.SpanID() == cfg.SpanID) {
		return in.here
	}
	return trace.NewSpanContext(cfg)
}
