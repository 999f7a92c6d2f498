package tracing

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// The propagator's table, as seen in the spans of a server with a ParentBased sampler.
func TestRows(t *testing.T) {
	type row struct {
		name    string
		headers []string
		opts    []xtraceid.Option
		trace   string // "" means a new one
		parent  string
		sampled bool
		root    bool // the root sampler, which samples everything, was called
	}
	b3 := func(id, sampled string, more ...string) []string {
		h := append([]string{"X-B3-TraceId", id, "X-B3-SpanId", spanS}, more...)
		if sampled != "" {
			h = append(h, "X-B3-Sampled", sampled)
		}
		return h
	}
	refuse := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return false })}
	deferred := []xtraceid.Option{xtraceid.WithDeferredSampled()}
	rows := []row{
		{"nothing", nil, nil, "", noSpan, true, true},
		{"64-bit B3, sampled", b3(lowT, "1", "x-trace-id", traceT), nil, traceT, spanS, true, false},
		{"64-bit B3, not sampled", b3(lowT, "0", "x-trace-id", traceT), nil, traceT, spanS, false, false},
		{"another 64-bit B3", b3(low64, "1", "x-trace-id", traceT), nil, traceT, spanS, true, false},
		{"64-bit B3, debug", b3(lowT, "", "x-trace-id", traceT, "X-B3-Flags", "1"), nil, traceT, spanS, true, false},
		{"64-bit B3, open", b3(lowT, "", "x-trace-id", traceT), nil, traceT, spanS, false, false},
		{"64-bit B3, open treated as sampled", b3(lowT, "", "x-trace-id", traceT), deferred, traceT, spanS, true, false},
		{"other B3, sampled", b3(traceU, "1", "x-trace-id", traceT), nil, traceT, noSpan, true, true},
		{"x-trace-id alone", []string{"x-trace-id", traceT}, nil, traceT, noSpan, true, true},
		{"B3 alone", b3(traceU, "1"), nil, traceU, spanS, true, false},
		{"B3 alone, 64-bit", b3(low64, "1"), nil, "0000000000000000" + low64, spanS, true, false},
		{"malformed with B3", b3(traceU, "1", "x-trace-id", "x"), nil, traceU, spanS, true, false},
		{"refused", b3(lowT, "1", "x-trace-id", traceT), refuse, "", noSpan, true, true},
		{"refused, B3 alone, not sampled", b3(traceU, "0"), refuse, "", noSpan, true, true},
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			var seen trace.SpanContext
			s := startService(t, spanContextOf(&seen), serviceConfig{propagator: xtraceid.New(c.opts...)})
			resp := get(t, s.Client(), s.URL, c.headers...)

			got := seen.TraceID().String()
			if isNew := traceid.Plausible(seen.TraceID(), time.Now(), time.Minute, time.Minute); isNew != (c.trace == "") {
				t.Errorf("trace %s is new: %v", got, isNew)
			}
			if c.trace != "" && got != c.trace {
				t.Errorf("trace %s, want %s", got, c.trace)
			}
			if h := resp.Header.Values("x-trace-id"); len(h) != 1 || h[0] != got {
				t.Errorf("the response has x-trace-id %q, the span has %s", h, got)
			}
			if seen.IsSampled() != c.sampled {
				t.Errorf("sampled %v, want %v", seen.IsSampled(), c.sampled)
			}
			if asked := s.root.asked.Load() == 1; asked != c.root {
				t.Errorf("the root sampler was called %d times, want %v", s.root.asked.Load(), c.root)
			}
			if !c.sampled {
				s.Close()
				s.ended(t, 0)
				return
			}
			span := s.ended(t, 1)[0]
			if span.SpanContext().TraceID() != seen.TraceID() {
				t.Errorf("the span has trace %s, but its handler saw %s", span.SpanContext().TraceID(), got)
			}
			if p := span.Parent().SpanID().String(); p != c.parent {
				t.Errorf("parent span %s, want %s", p, c.parent)
			}
			checkLinks(t, span)
		})
	}
}

// checkLinks checks that the span has links to exactly these spans (trace, span, …).
func checkLinks(t *testing.T, span sdktrace.ReadOnlySpan, want ...string) {
	t.Helper()
	var got []string
	for _, l := range span.Links() {
		got = append(got, l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String())
	}
	if len(got) != len(want) {
		t.Fatalf("links %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("links %q, want %q", got, want)
		}
	}
}
