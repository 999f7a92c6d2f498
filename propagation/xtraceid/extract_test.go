package xtraceid_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/http"
	"slices"
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

func extract(h http.Header, opts ...xtraceid.Option) context.Context {
	return xtraceid.New(opts...).Extract(context.Background(), propagation.HeaderCarrier(h))
}

type extractCase struct {
	name     string
	headers  []string
	trace    string // "": no trace
	span     string // "" if there is no parent
	decision string // of B3: 0, 1, d (debug), "" (left to the receiver); 0 without a parent
}

// rows is the table of docs/headers.md.
var rows = append(malformed(), []extractCase{
	{"nothing", nil, "", "", "0"},

	{"x-trace-id, B3 with 64-bit ID, its low half",
		append(multi(lowT, spanS, "1"), "x-trace-id", traceT), traceT, spanS, "1"},
	{"x-trace-id, B3 with 64-bit ID, open", append(multi(lowT, spanS, ""), "x-trace-id", traceT),
		traceT, spanS, ""},
	{"x-trace-id, B3 with 64-bit ID, debug", append(multi(lowT, spanS, ""), "x-trace-id", traceT,
		"X-B3-Flags", "1"), traceT, spanS, "d"},
	{"x-trace-id, B3 with 64-bit ID, not its low half",
		append(multi(low64, spanS, "1"), "x-trace-id", traceT), traceT, spanS, "1"},
	{"x-trace-id, B3 with 64-bit ID, padded",
		append(multi("0000000000000000"+low64, spanS, "1"), "x-trace-id", traceT), traceT, spanS,
		"1"},
	{"x-trace-id, single B3 with 64-bit ID", []string{"x-trace-id", traceT, "b3",
		lowT + "-" + spanS + "-1-" + spanP}, traceT, spanS, "1"},

	{"x-trace-id, B3 with the same ID", append(multi(traceT, spanS, "1"), "x-trace-id", traceT),
		traceT, spanS, "1"},
	{"x-trace-id, single B3 with the same ID",
		[]string{"x-trace-id", traceT, "b3", traceT + "-" + spanS + "-d"}, traceT, spanS, "d"},

	{"x-trace-id, B3 with another ID", append(multi(traceU, spanS, "1"), "x-trace-id", traceT),
		traceT, "", "0"},
	{"x-trace-id, B3 with another ID, debug",
		append(multi(traceU, spanS, ""), "x-trace-id", traceT, "X-B3-Flags", "1"), traceT, "", "0"},
	{"x-trace-id, B3 with another ID of the same low half",
		append(multi("1"+traceT[1:], spanS, "1"), "x-trace-id", traceT), traceT, "", "0"},
	{"x-trace-id, B3 with another ID of the same high half",
		append(multi(traceT[:31]+"9", spanS, "1"), "x-trace-id", traceT), traceT, "", "0"},

	{"x-trace-id alone", []string{"x-trace-id", traceT}, traceT, "", "0"},
	{"x-trace-id alone, 64-bit padded", []string{"x-trace-id", "0000000000000000" + low64},
		"0000000000000000" + low64, "", "0"},
	{"x-trace-id, debug", []string{"x-trace-id", traceT, "X-B3-Flags", "1", "X-B3-Sampled", "1"},
		traceT, "", "0"},
	{"x-trace-id, debug in one header", []string{"x-trace-id", traceT, "b3", "d"}, traceT, "", "0"},
	{"x-trace-id, debug with malformed B3", append(multi("xyz", spanS, ""), "X-B3-Flags", "1",
		"x-trace-id", traceT), traceT, "", "0"},
	{"x-trace-id, B3 malformed: no span ID", []string{"x-trace-id", traceT, "X-B3-TraceId", traceT,
		"X-B3-Sampled", "1"}, traceT, "", "0"},
	{"x-trace-id, single B3 malformed", []string{"x-trace-id", traceT, "b3", traceT}, traceT, "",
		"0"},

	{"B3 alone", multi(traceU, spanS, "1"), traceU, spanS, "1"},
	{"B3 alone, open", multi(traceU, spanS, ""), traceU, spanS, ""},
	{"B3 alone, not sampled", multi(traceU, spanS, "0"), traceU, spanS, "0"},
	{"B3 alone, sampling malformed", multi(traceU, spanS, "2"), "", "", "0"},
	{"B3 alone, 64-bit", multi(low64, spanS, "1"), "0000000000000000" + low64, spanS, "1"},
	{"B3 alone, malformed", multi("xyz", spanS, "1"), "", "", "0"},
	{"single B3 alone, open", []string{"b3", traceU + "-" + spanS}, traceU, spanS, ""},
	{"single B3 alone, 64-bit, open", []string{"b3", low64 + "-" + spanS},
		"0000000000000000" + low64, spanS, ""},
	{"single B3 alone, not sampled, over open headers",
		append(multi(traceT, spanS, ""), "b3", traceU+"-"+spanS+"-0"), traceU, spanS, "0"},
	// The debug flag belongs to a trace; without one a caller at the edge would set it on ours.
	{"debug alone", []string{"X-B3-Flags", "1"}, "", "", "0"},
	{"debug alone in one header", []string{"b3", "d"}, "", "", "0"},
	{"debug with malformed IDs", append(multi("xyz", spanS, ""), "X-B3-Flags", "1"), "", "", "0"},

	{"x-trace-id repeated, same except for case",
		[]string{"x-trace-id", traceT, "x-trace-id", strings.ToUpper(traceT)}, traceT, "", "0"},
	{"x-trace-id repeated, same, joined", []string{"x-trace-id",
		traceT + ", " + traceT + "," + traceT}, traceT, "", "0"},
	{"x-trace-id with space around", []string{"x-trace-id", " " + traceT + "\t"}, traceT, "", "0"},
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
		{"not hex", []string{traceT[:31] + "g"}},
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
		cases = append(cases, extractCase{"malformed, " + c.name, x, "", "", "0"},
			extractCase{"B3, malformed x-trace-id, " + c.name,
				append(multi(traceU, spanS, "1"), x...), traceU, spanS, "1"})
	}
	return cases
}

// Each row without options, with a verifier that accepts, and with open decisions treated as
// sampled. A span of this process makes no difference to what is kept of B3.
func TestExtract(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []struct {
				option   xtraceid.Option
				decision string
			}{
				{nil, c.decision},
				{xtraceid.WithVerifier(func(id trace.TraceID) bool {
					return id == traceID(t, c.trace)
				}), c.decision},
				{xtraceid.WithDeferredSampled(), cmp.Or(c.decision, "1")},
			} {
				want := spanContext(t, c.trace, c.span, o.decision == "1" || o.decision == "d")
				for _, here := range []context.Context{context.Background(),
					local(t, traceT, spanP, true)} {
					ctx := xtraceid.New(o.option).Extract(here,
						propagation.HeaderCarrier(headers(c.headers...)))
					got := trace.SpanContextFromContext(ctx)
					if here == context.Background() && !got.Equal(want) {
						t.Errorf("got %s, want %s", show(got), show(want))
					}
					if got := kept(t, ctx, want.TraceFlags()); got != o.decision {
						t.Errorf("B3's decision is %q, want %q", got, o.decision)
					}
				}
			}
		})
	}
}

// kept returns the decision that the b3 package has kept in the context alongside the span context:
// it sends it for a remote span.
func kept(t *testing.T, ctx context.Context, flags trace.TraceFlags) string {
	sc := spanContext(t, traceT, spanS, false).WithTraceFlags(flags)
	ctx = trace.ContextWithSpanContext(ctx, sc)
	out := propagation.MapCarrier{}
	b3.New(b3.WithInjectEncoding(b3.B3SingleHeader)).Inject(ctx, out)
	return strings.TrimPrefix(strings.TrimPrefix(out["b3"], traceT+"-"+spanS), "-")
}

func show(sc trace.SpanContext) string {
	s := sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
	if sc.IsRemote() {
		s += " remote"
	}
	return s
}

// carrier has several values of a key, but is not an HTTP header's.
type carrier struct{ propagation.HeaderCarrier }

func (c carrier) Values(key string) []string { return http.Header(c.HeaderCarrier).Values(key) }

// Every row once more through the propagators that README recommends, with and without a
// traceparent. The verifier is called once, with the resulting trace ID; if it refuses, nothing of
// the request remains, although traceparent was read by another propagator.
func TestExtractVerifier(t *testing.T) {
	const traceW = "4bf92f3577b34da6a3ce929d0e0e4736" // only in traceparent
	parents := []string{
		"", "00-" + traceT + "-" + spanS + "-01", "00-" + traceT + "-" + spanP + "-03",
		"00-" + traceU + "-" + spanS + "-01", "00-" + traceW + "-" + spanS + "-01",
	}
	parents = slices.DeleteFunc(parents, func(parent string) bool {
		// OpenTelemetry before v1.42 refuses the random flag.
		ctx := propagation.TraceContext{}.Extract(t.Context(),
			propagation.MapCarrier{"traceparent": parent})
		return parent != "" && !trace.SpanContextFromContext(ctx).IsValid()
	})
	for _, c := range rows {
		for _, parent := range parents {
			h := headers(c.headers...)
			h.Set("traceparent", parent)
			h.Set("tracestate", "v=1")
			want := c.trace
			if want == "" && parent != "" {
				want = parent[3:35]
			}
			for _, accept := range []bool{false, true} {
				var asked []trace.TraceID
				p := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
					propagation.Baggage{},
					xtraceid.New(xtraceid.WithVerifier(func(id trace.TraceID) bool {
						asked = append(asked, id)
						return accept
					})))
				ctx := p.Extract(context.Background(), carrier{propagation.HeaderCarrier(h)})
				if want == "" && len(asked) > 0 ||
					want != "" && (len(asked) != 1 || asked[0] != traceID(t, want)) {
					t.Errorf("%s, %s: the verifier was called with %v, want one call with %q",
						c.name, parent, asked, want)
				}
				got := trace.SpanContextFromContext(ctx)
				if accept && want != "" {
					if got.TraceID() != traceID(t, want) || !got.IsRemote() {
						t.Errorf("%s, %s: accepted, got %s, want trace %s", c.name, parent,
							show(got), want)
					}
					continue
				}
				out := propagation.MapCarrier{}
				p.Inject(ctx, out)
				if !got.Equal(trace.SpanContext{}) || len(out) > 0 || kept(t, ctx, 0) != "0" {
					t.Errorf("%s, %s: got %s, forwards %v and keeps %q of B3, want nothing", c.name,
						parent, show(got), out, kept(t, ctx, 0))
				}
			}
		}
	}
}

// A span is already in the context: this process's own, which stays if a verifier refuses, or one
// that another propagator has found. That of traceparent may have a tracestate and the random flag,
// which B3 does not have and must not remove.
func TestExtractIntoSpan(t *testing.T) {
	own := trace.SpanContextFromContext(local(t, traceT, spanP, true))
	remote := own.WithRemote(true)
	state, err := trace.ParseTraceState("v=1")
	if err != nil {
		t.Fatal(err)
	}
	w3c := spanContext(t, traceT, spanS, true).WithTraceFlags(3).WithTraceState(state)
	alone := func(id string) trace.SpanContext { return spanContext(t, id, "", false) }
	refused := "1" + traceT[1:]
	verify := xtraceid.WithVerifier(func(id trace.TraceID) bool {
		return id != traceID(t, refused)
	})
	broken := alone("").WithSpanID(own.SpanID()).WithTraceFlags(trace.FlagsSampled)
	for _, c := range []struct {
		name    string
		here    trace.SpanContext
		headers []string
		want    trace.SpanContext
	}{
		{"nothing comes", own, nil, own},
		{"nothing comes, remote", w3c, nil, w3c},
		{"x-trace-id, with a span without a trace in the context", broken,
			[]string{"x-trace-id", traceT}, alone(traceT)},
		{"x-trace-id of another trace", own, []string{"x-trace-id", traceU}, alone(traceU)},
		{"x-trace-id of another trace, remote", w3c, []string{"x-trace-id", traceU}, alone(traceU)},
		{"x-trace-id of this trace", own, []string{"x-trace-id", traceT}, own},
		{"x-trace-id of this trace, remote", w3c, []string{"x-trace-id", traceT}, w3c},
		{"x-trace-id of this trace, B3 of another", w3c,
			append(multi(traceU, spanS, "0"), "x-trace-id", traceT), w3c},
		{"B3", own, multi(traceU, spanS, "0"), spanContext(t, traceU, spanS, false)},
		{"B3 of this span", own, multi(traceT, spanP, "1"), remote},
		{"B3 of this span, remote", w3c, append(multi(traceT, spanS, "1"), "x-trace-id", traceT),
			w3c},
		{"B3 of this span, remote, shortened", w3c,
			append(multi(lowT, spanS, "1"), "x-trace-id", traceT), w3c},
		{"B3 names another parent", w3c, append(multi(traceT, spanP, "1"), "x-trace-id", traceT),
			remote},
		{"refused", own, []string{"x-trace-id", refused}, own},
		{"refused, remote", remote, []string{"x-trace-id", refused}, trace.SpanContext{}},
	} {
		for _, option := range []xtraceid.Option{verify, nil} {
			ctx := trace.ContextWithSpanContext(context.Background(), c.here)
			ctx = xtraceid.New(option).Extract(ctx,
				propagation.HeaderCarrier(headers(c.headers...)))
			if got := trace.SpanContextFromContext(ctx); !got.Equal(c.want) &&
				(option != nil || !slices.Contains(c.headers, refused)) {
				t.Errorf("%s: got %s, want %s", c.name, show(got), show(c.want))
			}
		}
	}
}

// FuzzExtract checks what holds for all headers.
func FuzzExtract(f *testing.F) {
	add := func(h http.Header) {
		x := append(h.Values("x-trace-id"), "", "")
		f.Add(x[0], x[1], h.Get("b3"), h.Get("X-B3-TraceId"), h.Get("X-B3-SpanId"),
			h.Get("X-B3-ParentSpanId"), h.Get("X-B3-Sampled"), h.Get("X-B3-Flags"))
	}
	for _, c := range rows {
		add(headers(c.headers...))
	}
	for _, v := range []string{strings.Repeat("-", 33), strings.Repeat("0", 49),
		traceT + "-" + spanS + "-"} {
		add(headers("x-trace-id", traceT, "b3", v))
	}
	refuse := xtraceid.WithVerifier(nil)
	f.Fuzz(func(t *testing.T, x1, x2, single, id, span, parent, sampled, flags string) {
		in := propagation.HeaderCarrier{}
		for _, field := range [][2]string{
			{"x-trace-id", x1}, {"x-trace-id", x2}, {"b3", single}, {"X-B3-TraceId", id},
			{"X-B3-SpanId", span},
			{"X-B3-ParentSpanId", parent}, {"X-B3-Sampled", sampled}, {"X-B3-Flags", flags},
		} {
			if field[1] != "" {
				http.Header(in).Add(field[0], field[1])
			}
		}
		refused := xtraceid.New(refuse, xtraceid.WithDeferredSampled()).Extract(t.Context(), in)
		if got := trace.SpanContextFromContext(refused); !got.Equal(trace.SpanContext{}) {
			t.Errorf("refused, but got %s", show(got))
		}
		p := xtraceid.New()
		ctx := p.Extract(t.Context(), in)
		want := trace.SpanContextFromContext(ctx)
		switch {
		case !want.HasTraceID() && !want.Equal(trace.SpanContext{}):
			t.Errorf("a span context without a trace ID: %s", show(want))
		case want.HasTraceID() && (!want.IsRemote() || !want.HasSpanID() && x1+x2 == ""):
			t.Errorf("not remote, or no parent without an x-trace-id: %s", show(want))
		}

		// The next service extracts the same span context from what is sent.
		out := propagation.MapCarrier{}
		p.Inject(ctx, out)
		if got := trace.SpanContextFromContext(p.Extract(t.Context(), out)); !got.Equal(want) ||
			!want.HasTraceID() && len(out) > 0 {
			t.Errorf("sent %v for %s, extracted %s", out, show(want), show(got))
		}
	})
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
