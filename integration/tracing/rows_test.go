package tracing

import (
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// What the SDK and its ParentBased sampler make of the rows of the propagator's table, which are
// tested one by one in its package.
func TestRows(t *testing.T) {
	b3 := func(id, sampled string, more ...string) []string {
		return append([]string{"X-B3-TraceId", id, "X-B3-SpanId", spanS, "X-B3-Sampled", sampled}, more...)
	}
	refuse := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return false })}
	for _, c := range []struct {
		name    string
		headers []string
		opts    []xtraceid.Option
		trace   string // "" means a new one
		parent  string
		sampled bool
		root    bool // the root sampler, which samples everything, was called
	}{
		{"nothing", nil, nil, "", noSpan, true, true},
		{"64-bit B3, sampled", b3(lowT, "1", "x-trace-id", traceT), nil, traceT, spanS, true, false},
		{"64-bit B3, not sampled", b3(lowT, "0", "x-trace-id", traceT), nil, traceT, spanS, false, false},
		{"other B3, not sampled", b3(traceU, "0", "x-trace-id", traceT), nil, traceT, noSpan, true, true},
		{"x-trace-id alone", []string{"x-trace-id", traceT}, nil, traceT, noSpan, true, true},
		{"B3 alone, 64-bit", b3(low64, "1"), nil, "0000000000000000" + low64, spanS, true, false},
		{"refused", b3(lowT, "0", "x-trace-id", traceT), refuse, "", noSpan, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen trace.SpanContext
			s := startService(t, spanContextOf(&seen), serviceConfig{propagator: xtraceid.New(c.opts...)})
			resp := get(t, s.Client(), s.URL, c.headers...)

			got := seen.TraceID().String()
			if isNew := traceid.Plausible(seen.TraceID(), time.Now(), time.Minute, time.Minute); isNew != (c.trace == "") || !isNew && got != c.trace {
				t.Errorf("trace %s, want %q", got, c.trace)
			}
			if h := resp.Header.Values("x-trace-id"); len(h) != 1 || h[0] != got {
				t.Errorf("the response has x-trace-id %q, the span has %s", h, got)
			}
			if asked := s.root.asked.Load() == 1; asked != c.root || seen.IsSampled() != c.sampled {
				t.Errorf("sampled %v, want %v; the root sampler was called %v, want %v", seen.IsSampled(), c.sampled, asked, c.root)
			}
			if !c.sampled {
				s.Close()
				s.ended(t, 0)
				return
			}
			span := s.ended(t, 1)[0]
			if p := span.Parent().SpanID().String(); p != c.parent || span.SpanContext().TraceID() != seen.TraceID() {
				t.Errorf("the span has trace %s, its handler saw %s; parent span %s, want %s", span.SpanContext().TraceID(), got, p, c.parent)
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
	if !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
}
