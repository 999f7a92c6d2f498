package xtraceid_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const (
	traceT = "32d1f0a9c8000005a1b2c3d4e5f60718" // x-trace-id in most cases
	traceU = "32d1f0a9c8000006ffeeddccbbaa9988" // another trace
	lowT   = "a1b2c3d4e5f60718"
	low64  = "00f067aa0ba902b7" // a 64-bit trace ID that is not T's low half
	spanS  = "53995c3f42cd8ad8"
	spanP  = "e457b5a2e4d86bd1" // S's parent
)

// unhex decodes s into id. An empty s leaves it zero.
func unhex(tb testing.TB, id []byte, s string) {
	tb.Helper()
	if n, err := hex.Decode(id, []byte(s)); err != nil || n != 0 && n != len(id) {
		tb.Fatal(s, err)
	}
}

func traceID(tb testing.TB, s string) (id trace.TraceID) { unhex(tb, id[:], s); return id }

func spanID(tb testing.TB, s string) (id trace.SpanID) { unhex(tb, id[:], s); return id }

// spanContext returns a span context that is remote if it has a trace ID.
func spanContext(tb testing.TB, traceHex, spanHex string, sampled bool) trace.SpanContext {
	tb.Helper()
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    traceID(tb, traceHex),
		SpanID:     spanID(tb, spanHex),
		TraceFlags: trace.TraceFlags(0).WithSampled(sampled),
		Remote:     traceHex != "",
	})
}

// headers returns an http.Header of pairs; a name may occur more than once.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func multi(traceHex, spanHex, sampled string) []string {
	h := []string{"X-B3-TraceId", traceHex, "X-B3-SpanId", spanHex, "X-B3-ParentSpanId", spanP}
	if sampled != "" {
		h = append(h, "X-B3-Sampled", sampled)
	}
	return h
}

func with(pairs []string, more ...string) []string {
	return append(append([]string(nil), pairs...), more...)
}

func extract(h http.Header, opts ...xtraceid.Option) context.Context {
	return xtraceid.New(opts...).Extract(context.Background(), propagation.HeaderCarrier(h))
}

type extractCase struct {
	name    string
	headers []string
	trace   string // "" if there is none
	span    string // "" if there is no parent
	sampled bool
}

// rows is the table of the package doc.
var rows = append(malformed(), []extractCase{
	{"nothing", nil, "", "", false},

	{"x-trace-id, B3 with 64-bit ID, its low half", with(multi(lowT, spanS, "1"), "x-trace-id", traceT), traceT, spanS, true},
	{"x-trace-id, B3 with 64-bit ID, sampling open", with(multi(lowT, spanS, ""), "x-trace-id", traceT), traceT, spanS, false},
	{"x-trace-id, B3 with 64-bit ID, not its low half", with(multi(low64, spanS, "1"), "x-trace-id", traceT), traceT, spanS, true},
	{"x-trace-id, B3 with 64-bit ID, padded", with(multi("0000000000000000"+low64, spanS, "1"), "x-trace-id", traceT), traceT, spanS, true},
	{"x-trace-id, single B3 with 64-bit ID", []string{"x-trace-id", traceT, "b3", lowT + "-" + spanS + "-1-" + spanP}, traceT, spanS, true},

	{"x-trace-id, B3 with the same ID", with(multi(traceT, spanS, "1"), "x-trace-id", traceT), traceT, spanS, true},
	{"x-trace-id, single B3 with the same ID", []string{"x-trace-id", traceT, "b3", traceT + "-" + spanS + "-1"}, traceT, spanS, true},
	{"x-trace-id in upper case, B3 with the same ID", with(multi(traceT, spanS, "1"), "x-trace-id", strings.ToUpper(traceT)), traceT, spanS, true},

	{"x-trace-id, B3 with another ID", with(multi(traceU, spanS, "1"), "x-trace-id", traceT), traceT, "", false},
	{"x-trace-id, B3 with another ID of the same low half", with(multi("1"+traceT[1:], spanS, "1"), "x-trace-id", traceT), traceT, "", false},
	{"x-trace-id, B3 with another ID of the same high half", with(multi(traceT[:31]+"9", spanS, "1"), "x-trace-id", traceT), traceT, "", false},
	{"x-trace-id, single B3 with another ID", []string{"x-trace-id", traceT, "b3", traceU + "-" + spanS + "-1"}, traceT, "", false},

	{"x-trace-id alone", []string{"x-trace-id", traceT}, traceT, "", false},
	{"x-trace-id alone, 64-bit padded", []string{"x-trace-id", "0000000000000000" + low64}, "0000000000000000" + low64, "", false},
	{"x-trace-id, B3 without IDs: sampled", []string{"x-trace-id", traceT, "X-B3-Sampled", "1"}, traceT, "", true},
	{"x-trace-id, B3 without IDs: sampled, old form", []string{"x-trace-id", traceT, "X-B3-Sampled", "True"}, traceT, "", true},
	{"x-trace-id, B3 without IDs: debug", []string{"x-trace-id", traceT, "X-B3-Flags", "1"}, traceT, "", true},
	{"x-trace-id, B3 without IDs: debug over not sampled", []string{"x-trace-id", traceT, "X-B3-Flags", "1", "X-B3-Sampled", "0"}, traceT, "", true},
	{"x-trace-id, single B3 without IDs: sampled", []string{"x-trace-id", traceT, "b3", "1"}, traceT, "", true},
	{"x-trace-id, single B3 without IDs: not sampled, over multiple headers", []string{"x-trace-id", traceT, "b3", "0", "X-B3-Sampled", "1"}, traceT, "", false},
	{"x-trace-id, single B3 without IDs: debug", []string{"x-trace-id", traceT, "b3", "d"}, traceT, "", true},
	{"x-trace-id, B3 malformed: no span ID", []string{"x-trace-id", traceT, "X-B3-TraceId", traceT, "X-B3-Sampled", "1"}, traceT, "", false},
	{"x-trace-id, B3 malformed: no trace ID", []string{"x-trace-id", traceT, "X-B3-SpanId", spanS, "X-B3-Sampled", "1"}, traceT, "", false},
	{"x-trace-id, single B3 malformed", []string{"x-trace-id", traceT, "b3", traceT}, traceT, "", false},

	{"B3 alone", multi(traceU, spanS, "1"), traceU, spanS, true},
	{"B3 alone, sampling open", multi(traceU, spanS, ""), traceU, spanS, false},
	{"B3 alone, not sampled", multi(traceU, spanS, "0"), traceU, spanS, false},
	{"B3 alone, sampling malformed", multi(traceU, spanS, "2"), "", "", false},
	{"single B3 alone, sampling open", []string{"b3", traceU + "-" + spanS}, traceU, spanS, false},
	{"single B3 alone, 64-bit, sampling open", []string{"b3", low64 + "-" + spanS}, "0000000000000000" + low64, spanS, false},
	{"single B3 alone, not sampled, over open headers", with(multi(traceT, spanS, ""), "b3", traceU+"-"+spanS+"-0"), traceU, spanS, false},
	{"B3 alone, 64-bit", multi(low64, spanS, "1"), "0000000000000000" + low64, spanS, true},
	{"B3 alone, without IDs", []string{"b3", "1"}, "", "", false},
	{"B3 alone, malformed", multi("xyz", spanS, "1"), "", "", false},

	{"x-trace-id repeated, same except for case", []string{"x-trace-id", traceT, "x-trace-id", strings.ToUpper(traceT)}, traceT, "", false},
	{"x-trace-id repeated, same, joined", []string{"x-trace-id", traceT + ", " + traceT}, traceT, "", false},
	{"x-trace-id repeated, same, joined without space", []string{"x-trace-id", traceT + "," + traceT, "x-trace-id", traceT}, traceT, "", false},
	{"x-trace-id with space around", []string{"x-trace-id", " " + traceT + "\t"}, traceT, "", false},
}...)

// malformed returns cases with malformed values of x-trace-id, each alone and with B3.
func malformed() (cases []extractCase) {
	for _, c := range []struct {
		name   string
		values []string
	}{
		{"empty", []string{""}},
		{"zero", []string{strings.Repeat("0", 32)}},
		{"64-bit", []string{low64}},
		{"31 digits", []string{traceT[:31]}},
		{"33 digits", []string{traceT + "0"}},
		{"not hex", []string{traceT[:31] + "g"}},
		{"not ASCII", []string{traceT[:30] + "é"}},
		{"0x", []string{"0x" + traceT[:30]}},
		{"space inside", []string{traceT[:16] + " " + traceT[17:]}},
		{"repeated, different", []string{traceT, traceU}},
		{"repeated, the second malformed", []string{traceT, "x"}},
		{"repeated, the second empty", []string{traceT, ""}},
		{"repeated, the first empty", []string{"", traceT}},
		{"joined, different", []string{traceT + "," + traceU}},
		{"joined, an empty part", []string{traceT + ","}},
	} {
		var x []string
		for _, v := range c.values {
			x = append(x, "x-trace-id", v)
		}
		cases = append(cases, extractCase{"malformed, " + c.name, x, "", "", false},
			extractCase{"B3, malformed x-trace-id, " + c.name, with(multi(traceU, spanS, "1"), x...), traceU, spanS, true})
	}
	return cases
}

// FuzzExtract has more options, also in the context of a span.
func TestExtract(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			accept := func(id trace.TraceID) bool { return id == traceID(t, c.trace) }
			for _, opts := range [][]xtraceid.Option{nil, {xtraceid.WithVerifier(accept)}} {
				got, want := trace.SpanContextFromContext(extract(headers(c.headers...), opts...)), spanContext(t, c.trace, c.span, c.sampled)
				if !got.Equal(want) {
					t.Errorf("%d options: got %s, want %s", len(opts), show(got), show(want))
				}
			}
		})
	}
}

func show(sc trace.SpanContext) string {
	s := sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
	if sc.IsRemote() {
		s += " remote"
	}
	return s
}

// Every row once more through the propagators that README recommends, with and without a
// traceparent. The verifier is called once, with the resulting trace ID; if it refuses, nothing of
// the request remains, although traceparent was read by another propagator.
func TestExtractVerifier(t *testing.T) {
	const traceW = "4bf92f3577b34da6a3ce929d0e0e4736" // only in traceparent
	parents := []string{
		"", "00-" + traceT + "-" + spanS + "-01", "00-" + traceT + "-" + spanP + "-03",
		"00-" + traceU + "-" + spanS + "-01", "00-" + traceW + "-" + spanS + "-01",
	}
	for _, c := range rows {
		for _, parent := range parents {
			h := headers(with(c.headers, "traceparent", parent, "tracestate", "v=1")...)
			want := c.trace
			if want == "" && parent != "" {
				want = parent[3:35]
			}
			for _, accept := range []bool{false, true} {
				var asked []trace.TraceID
				p := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{},
					xtraceid.New(xtraceid.WithVerifier(func(id trace.TraceID) bool {
						asked = append(asked, id)
						return accept
					})))
				ctx := p.Extract(context.Background(), propagation.HeaderCarrier(h))
				if want != "" && (len(asked) != 1 || asked[0] != traceID(t, want)) || want == "" && len(asked) > 0 {
					t.Errorf("%s, %s: the verifier was called with %v, want one call with %q", c.name, parent, asked, want)
				}
				got := trace.SpanContextFromContext(ctx)
				if accept && want != "" {
					if got.TraceID() != traceID(t, want) || !got.IsRemote() {
						t.Errorf("%s, %s: accepted, got %s, want trace %s", c.name, parent, show(got), want)
					}
					continue
				}
				out := propagation.MapCarrier{}
				p.Inject(ctx, out)
				if !got.Equal(trace.SpanContext{}) || len(out) > 0 {
					t.Errorf("%s, %s: got %s and forwards %v, want nothing", c.name, parent, show(got), out)
				}
			}
		}
	}
}

// A verifier that somebody forgot to set refuses.
func TestNilVerifier(t *testing.T) {
	ctx := extract(headers("x-trace-id", traceT, "b3", traceT+"-"+spanS+"-d"), xtraceid.WithVerifier(nil))
	if got := trace.SpanContextFromContext(ctx); !got.Equal(trace.SpanContext{}) {
		t.Errorf("got %s, want nothing", show(got))
	}
}

// The b3 package keeps more in the context than the span context. It shows in what the package
// injects for a remote span. A span of this process makes no difference.
func TestExtractB3State(t *testing.T) {
	const open, debug, decided = "-", "d", "0/1"
	refuse := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return false })}
	accept := []xtraceid.Option{xtraceid.WithVerifier(func(trace.TraceID) bool { return true })}
	cases := []struct {
		name    string
		headers []string
		opts    []xtraceid.Option
		want    string
	}{
		{"B3 alone, open", multi(traceT, spanS, ""), nil, open},
		{"open", with(multi(lowT, spanS, ""), "x-trace-id", traceT), nil, open},
		{"open, treated as sampled", with(multi(lowT, spanS, ""), "x-trace-id", traceT), []xtraceid.Option{xtraceid.WithDeferredSampled()}, decided},
		{"open in a single header, treated as sampled", []string{"b3", traceT + "-" + spanS}, []xtraceid.Option{xtraceid.WithDeferredSampled()}, decided},
		{"decided", with(multi(lowT, spanS, "1"), "x-trace-id", traceT), nil, decided},
		{"debug", with(multi(lowT, spanS, ""), "x-trace-id", traceT, "X-B3-Flags", "1"), nil, debug},
		{"debug without IDs", []string{"x-trace-id", traceT, "b3", "d"}, nil, debug},
		// The flag is of a trace; without one a caller at the edge would set it on ours.
		{"debug without IDs and x-trace-id", []string{"X-B3-Flags", "1"}, nil, decided},
		{"debug in a single header, without IDs and x-trace-id", []string{"b3", "d"}, nil, decided},
		{"debug with malformed IDs", with(multi("xyz", spanS, ""), "X-B3-Flags", "1"), nil, decided},
		{"debug with malformed IDs and x-trace-id", with(multi("xyz", spanS, ""), "X-B3-Flags", "1", "x-trace-id", traceT), nil, decided},
		{"debug with a parent alone and x-trace-id", []string{"X-B3-ParentSpanId", spanS, "X-B3-Flags", "1", "x-trace-id", traceT}, nil, decided},
		{"debug without any ID to verify", []string{"X-B3-Flags", "1"}, accept, decided},
		{"debug, refused", []string{"x-trace-id", traceT, "b3", "d"}, refuse, decided},
		{"another trace, open", with(multi(traceU, spanS, ""), "x-trace-id", traceT), nil, decided},
		{"another trace, debug", with(multi(traceU, spanS, ""), "x-trace-id", traceT, "X-B3-Flags", "1"), nil, decided},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, here := range []context.Context{context.Background(), local(t, traceT, spanP, true)} {
				ctx := xtraceid.New(c.opts...).Extract(here, propagation.HeaderCarrier(headers(c.headers...)))
				ctx = trace.ContextWithSpanContext(ctx, spanContext(t, traceT, spanS, true))
				out := propagation.MapCarrier{}
				b3.New(b3.WithInjectEncoding(b3.B3MultipleHeader)).Inject(ctx, out)
				got := open
				switch {
				case out["x-b3-flags"] == "1":
					got = debug
				case out["x-b3-sampled"] != "":
					got = decided
				}
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

// A span is already in the context. If it is this process's own, it stays when a verifier refuses.
func TestExtractIntoSpan(t *testing.T) {
	local := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(t, traceT), SpanID: spanID(t, spanP), TraceFlags: trace.FlagsSampled})
	remote := local.WithRemote(true)
	idOnly := spanContext(t, traceT, "", false)
	refused := "1" + traceT[1:]
	verify := xtraceid.WithVerifier(func(id trace.TraceID) bool { return id != traceID(t, refused) })
	broken := idOnly.WithTraceID(trace.TraceID{}).WithSpanID(local.SpanID()).WithTraceFlags(trace.FlagsSampled)
	cases := []struct {
		name    string
		here    trace.SpanContext
		headers []string
		want    trace.SpanContext
	}{
		{"nothing comes", local, nil, local},
		{"no headers, remote", remote, nil, remote},
		{"no headers, trace ID only", idOnly, nil, idOnly},
		{"x-trace-id, with a span without a trace in the context", broken, []string{"x-trace-id", traceT}, idOnly},
		{"x-trace-id, with its trace and another flag in the context", idOnly.WithTraceFlags(trace.FlagsSampled), []string{"x-trace-id", traceU}, spanContext(t, traceU, "", false)},
		{"B3 without IDs", local, []string{"b3", "0"}, local},
		{"B3 of this span", local, multi(traceT, spanP, "1"), remote},
		{"B3", local, multi(traceU, spanS, "0"), spanContext(t, traceU, spanS, false)},
		{"x-trace-id and 64-bit B3", local, with(multi(lowT, spanS, "0"), "x-trace-id", traceT), spanContext(t, traceT, spanS, false)},
		{"x-trace-id of another trace", local, []string{"x-trace-id", traceU}, spanContext(t, traceU, "", false)},
		{"x-trace-id of another trace, remote", remote, []string{"x-trace-id", traceU}, spanContext(t, traceU, "", false)},
		{"x-trace-id of this trace", local, []string{"x-trace-id", traceT}, local},
		{"x-trace-id of this trace, remote", remote, []string{"x-trace-id", traceT}, remote},
		{"x-trace-id of this trace, B3 of another", remote, with(multi(traceU, spanS, "0"), "x-trace-id", traceT), remote},
		{"refused", local, []string{"x-trace-id", refused}, local},
		{"refused, remote", remote, []string{"x-trace-id", refused}, trace.SpanContext{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := trace.ContextWithSpanContext(context.Background(), c.here)
			ctx = xtraceid.New(verify).Extract(ctx, propagation.HeaderCarrier(headers(c.headers...)))
			if got := trace.SpanContextFromContext(ctx); !got.Equal(c.want) {
				t.Errorf("got %s, want %s", show(got), show(c.want))
			}
		})
	}
}

// Services with both propagators send the same span in three forms. B3 has neither tracestate nor
// random flag and must not remove them.
func TestExtractKeepsTheTraceContextSpan(t *testing.T) {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	const parent, kept = "00-" + traceT + "-" + spanS + "-03", traceT + "-" + spanS + "-03 remote v=1"
	for _, c := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"the same span in three forms", []string{"traceparent", parent, "x-trace-id", traceT, "b3", traceT + "-" + spanS + "-1"}, kept},
		{"B3 shortened", []string{"traceparent", parent, "x-trace-id", traceT, "b3", lowT + "-" + spanS + "-1"}, kept},
		{"B3 names another parent", []string{"traceparent", parent, "x-trace-id", traceT, "b3", traceT + "-" + spanP + "-1"},
			traceT + "-" + spanP + "-01 remote "},
		{"no B3", []string{"traceparent", parent, "x-trace-id", traceT}, kept},
		{"traceparent of another trace", []string{"traceparent", "00-" + traceU + "-" + spanS + "-03", "x-trace-id", traceT},
			traceT + "-0000000000000000-00 remote "},
		{"traceparent alone", []string{"traceparent", parent}, kept},
	} {
		h := headers(with(c.headers, "tracestate", "v=1")...)
		sc := trace.SpanContextFromContext(both.Extract(t.Context(), propagation.HeaderCarrier(h)))
		if got := show(sc) + " " + sc.TraceState().String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Carriers of other types may have several values of a key, too.
func TestExtractValues(t *testing.T) {
	type other struct{ propagation.HeaderCarrier }
	c := other{propagation.HeaderCarrier(headers("x-trace-id", traceT, "x-trace-id", traceU))}
	if got := trace.SpanContextFromContext(xtraceid.New().Extract(t.Context(), c)); got.HasTraceID() {
		t.Errorf("got %s, want nothing: the header has two IDs", show(got))
	}
}
