package xtraceid_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// rule is a case of testdata/headers.json, which its README describes.
type rule struct {
	Name    string
	Options struct {
		Header, Encoding, TraceContext       string
		B3TraceID64, DeferredSampled, Dashes bool
		Dropped                              bool
	}
	Incoming  http.Header
	Extracted struct {
		TraceID, SpanID string
		Sampled         any // "deferred" or a bool
	}
	Forwarded, Injected fields
}

// rules returns the cases of testdata/headers.json.
func rules(tb testing.TB) []rule {
	tb.Helper()
	text, err := os.ReadFile("../../testdata/headers.json")
	if err != nil {
		tb.Fatal(err)
	}
	var ids struct{ IDs map[string]string }
	var file struct{ Cases []rule }
	if err := json.Unmarshal(text, &ids); err != nil {
		tb.Fatal(err)
	}
	for name, id := range ids.IDs {
		text = []byte(strings.ReplaceAll(string(text), "$"+name, id))
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) < 100 {
		tb.Fatal(len(file.Cases), err)
	}
	// The encoding none, which is for browsers, is an option of the other clients.
	file.Cases = slices.DeleteFunc(file.Cases, func(c rule) bool {
		return c.Options.Encoding == "none"
	})
	for i, c := range file.Cases {
		canonical := http.Header{}
		for name, values := range c.Incoming {
			canonical[http.CanonicalHeaderKey(name)] = values
		}
		file.Cases[i].Incoming = canonical
	}
	return file.Cases
}

// want returns the span context that the rule extracts.
func (r rule) want(tb testing.TB) trace.SpanContext {
	e := r.Extracted
	return spanContext(tb, e.TraceID, e.SpanID, e.Sampled == true)
}

// encodings are the encodings of B3, as the rules name them.
var encodings = map[string]b3.Encoding{"": b3.B3MultipleHeader, "single": b3.B3SingleHeader,
	"both": b3.B3MultipleHeader | b3.B3SingleHeader}

// propagator returns the rule's.
func (r rule) propagator() propagation.TextMapPropagator {
	o := r.Options
	opts := []xtraceid.Option{xtraceid.WithB3Encoding(encodings[o.Encoding])}
	if o.Header != "" {
		opts = append(opts, xtraceid.WithHeader(o.Header))
	}
	if o.B3TraceID64 {
		opts = append(opts, xtraceid.WithB3TraceID64())
	}
	if o.DeferredSampled {
		opts = append(opts, xtraceid.WithDeferredSampled())
	}
	if o.Dashes {
		opts = append(opts, xtraceid.WithDashes())
	}
	p := xtraceid.New(opts...)
	switch o.TraceContext {
	case "first":
		p = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, p)
	case "last":
		p = propagation.NewCompositeTextMapPropagator(p, propagation.TraceContext{})
	}
	return p
}

// injected returns what p injects, except for traceparent.
func injected(ctx context.Context, p propagation.TextMapPropagator) fields {
	out := fields{}
	p.Inject(ctx, out)
	delete(out, "traceparent")
	return out
}

// values is a carrier with several values of a key that is not HTTP's.
type values struct{ propagation.HeaderCarrier }

func (v values) Values(key string) []string { return http.Header(v.HeaderCarrier).Values(key) }

// Each rule, read from HTTP and from another carrier. B3 without a sampling decision, which loses
// traces, is reported once.
func TestRules(t *testing.T) {
	const newTrace, own = "32d1f0a9c80000070123456789abcdef", "b7ad6b7169203331"
	written := map[string]fields{} // by encoding
	for _, c := range rules(t) {
		t.Run(c.Name, func(t *testing.T) {
			errs := reportstest.Collect(t)
			p, want := c.propagator(), c.want(t)
			http := propagation.HeaderCarrier(c.Incoming)
			ctx := p.Extract(t.Context(), http)
			for _, ctx := range []context.Context{ctx, p.Extract(t.Context(), values{http})} {
				if got := trace.SpanContextFromContext(ctx); !got.Equal(want) {
					t.Errorf("got %s, want %s", show(got), show(want))
				}
			}
			if lost := c.Extracted.Sampled == "deferred"; (len(errs()) == 1) != lost &&
				c.Options.TraceContext != "last" { // which decides after the report
				t.Errorf("reported %q", errs())
			}
			if out := injected(ctx, p); !maps.Equal(out, c.Forwarded) {
				t.Errorf("forwarded %v\nwant      %v", out, c.Forwarded)
			}
			id := newTrace
			if want.HasTraceID() {
				id = want.TraceID().String()
			}
			sampled := want.IsSampled() && !c.Options.Dropped
			span := spanContext(t, id, own, sampled).WithRemote(false)
			ctx = trace.ContextWithSpanContext(ctx, span)
			out := injected(ctx, p)
			if !maps.Equal(out, c.Injected) {
				t.Errorf("injected %v\nwant     %v", out, c.Injected)
			}
			if c.Options.Header == "" && c.Options.TraceContext == "" {
				all := written[c.Options.Encoding]
				if all == nil {
					all = fields{}
					written[c.Options.Encoding] = all
				}
				maps.Copy(all, out)
				if got := p.Fields(); got[0] != xtraceid.DefaultHeader {
					t.Errorf("the fields are %q", got)
				}
			}
		})
	}
	// Fields lists exactly what is written: each field is written for some span.
	for encoding, all := range written {
		r := rule{}
		r.Options.Encoding = encoding
		got := r.propagator().Fields()
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(maps.Keys(all))) {
			t.Errorf("encoding %q: Inject writes %v, Fields returns %q", encoding, all, got)
		}
	}
}

// Without a trace ID header, OpenTelemetry's propagator of B3 reads and writes the same, in each
// encoding, except that it takes over a debug flag that comes without IDs.
func TestAgreesWithContrib(t *testing.T) {
	for _, c := range rules(t) {
		in := propagation.HeaderCarrier(c.Incoming.Clone())
		http.Header(in).Del(xtraceid.DefaultHeader)
		for _, encoding := range encodings {
			ours := xtraceid.New(xtraceid.WithB3Encoding(encoding))
			theirs := b3.New(b3.WithInjectEncoding(encoding))
			here, there := ours.Extract(t.Context(), in), theirs.Extract(t.Context(), in)
			got, want := trace.SpanContextFromContext(here), trace.SpanContextFromContext(there)
			written, expected := injected(here, ours), injected(there, theirs)
			delete(written, xtraceid.DefaultHeader)
			if !got.Equal(want) || want.IsValid() && !maps.Equal(written, expected) &&
				!strings.Contains(c.Name, "debug without IDs") {
				t.Errorf("%s: %s, written as %v; contrib has %s, as %v", c.Name, show(got), written,
					show(want), expected)
			}
		}
	}
}

// A span is already in the context: this process's own, or one that another propagator has found.
// That of traceparent may have a tracestate and the random flag, which B3 does not have and must
// not remove. A refused request leaves this process's own span, whose trace no verifier is asked
// about.
func TestExtractIntoSpan(t *testing.T) {
	own := trace.SpanContextFromContext(local(t, traceT, spanP, true))
	remote := own.WithRemote(true)
	state, err := trace.ParseTraceState("v=1")
	if err != nil {
		t.Fatal(err)
	}
	w3c := spanContext(t, traceT, spanS, true).WithTraceFlags(3).WithTraceState(state)
	padded := w3c.WithTraceID(traceID(t, strings.Repeat("0", 16)+traceT[16:]))
	alone := func(id string) trace.SpanContext { return spanContext(t, id, "", false) }
	broken := alone("").WithSpanID(own.SpanID()).WithTraceFlags(trace.FlagsSampled)
	var none trace.SpanContext
	asked := false
	refuse := func(trace.TraceID) bool { asked = true; return false }
	trusting := xtraceid.New()
	refusing := xtraceid.Untrusted(trusting, xtraceid.Trust{Context: refuse})
	for _, c := range []struct {
		name    string
		p       propagation.TextMapPropagator
		here    trace.SpanContext
		headers []string
		want    trace.SpanContext
	}{
		{"nothing comes", trusting, own, nil, own},
		{"nothing comes, remote", trusting, w3c, nil, w3c},
		{"x-trace-id, with a span without a trace in the context", trusting, broken,
			[]string{"x-trace-id", traceT}, alone(traceT)},
		{"x-trace-id of another trace", trusting, own, []string{"x-trace-id", traceU},
			alone(traceU)},
		{"x-trace-id of this trace", trusting, own, []string{"x-trace-id", traceT}, own},
		{"x-trace-id of this trace, remote", trusting, w3c, []string{"x-trace-id", traceT}, w3c},
		{"x-trace-id, 64-bit ID of this process", trusting, padded.WithRemote(false),
			[]string{"x-trace-id", traceT}, alone(traceT)},
		{"x-trace-id, 64-bit ID, remote", trusting, padded, []string{"x-trace-id", traceT}, w3c},
		{"B3", trusting, own, multi(traceU, spanS, "0"), spanContext(t, traceU, spanS, false)},
		{"B3 of this span", trusting, own, multi(traceT, spanP, "1"), remote},
		{"B3 of this span, remote", trusting, w3c,
			append(multi(traceT, spanS, "1"), "x-trace-id", traceT), w3c},
		{"B3 of this span, remote, shortened", trusting, w3c,
			append(multi(traceT[16:], spanS, "1"), "x-trace-id", traceT), w3c},
		{"B3 names another parent", trusting, w3c,
			append(multi(traceT, spanP, "1"), "x-trace-id", traceT), remote},
		{"B3 undecided, this process sampled", trusting, own, multi(traceT, spanS, ""),
			spanContext(t, traceT, spanS, false)},
		{"nothing comes to an edge", refusing, own, nil, own},
		{"no trace ID, remote", refusing, none.WithRemote(true), nil, none.WithRemote(true)},
		{"refused: nothing comes, remote", refusing, remote, nil, none},
		{"refused", refusing, own, multi(traceU, spanS, "1"), own},
		{"refused, remote", refusing, remote, multi(traceU, spanS, "1"), none},
	} {
		asked = false
		ctx := trace.ContextWithSpanContext(context.Background(), c.here)
		ctx = c.p.Extract(ctx, propagation.HeaderCarrier(headers(c.headers...)))
		if got := trace.SpanContextFromContext(ctx); !got.Equal(c.want) ||
			asked != strings.HasPrefix(c.name, "refused") {
			t.Errorf("%s: got %s, want %s; the verifier was asked: %v", c.name, show(got),
				show(c.want), asked)
		}
	}
}

// A second request in the same context: the last one decides. There is nothing to inject without a
// trace that a caller has sent or a span.
func TestExtractAgain(t *testing.T) {
	p := xtraceid.New()
	again := func(ctx context.Context, pairs ...string) context.Context {
		return p.Extract(ctx, propagation.HeaderCarrier(headers(pairs...)))
	}
	alone := again(t.Context(), "x-trace-id", traceT)
	debug := again(t.Context(), "b3", traceT+"-"+spanS+"-d")
	for _, c := range []struct {
		name string
		ctx  context.Context
		want string // the parent and the decision that are sent
	}{
		{"an open decision", again(alone, "b3", traceT+"-"+spanS), spanS},
		{"another decision", again(debug, "b3", traceT+"-"+spanP+"-0"), spanP + "0"},
		{"span ID only", local(t, "", spanS, true), ""},
		{"span ID only, remote", trace.ContextWithRemoteSpanContext(t.Context(),
			spanContext(t, "", spanS, true)), ""},
		{"trace ID only, from here", local(t, traceT, "", true), ""},
	} {
		out := injected(c.ctx, p)
		if got := out["x-b3-spanid"] + out["x-b3-sampled"] + out["x-b3-flags"]; got != c.want ||
			c.want == "" && len(out) > 0 {
			t.Errorf("%s: sent %v, want %q", c.name, out, c.want)
		}
	}
}

// Over HTTP stale headers are replaced, and a header that is added later changes no other one.
func TestInjectHTTP(t *testing.T) {
	h := http.Header{"X-B3-Spanid": {"stale", "1"}}
	p := xtraceid.New(xtraceid.WithB3Encoding(b3.B3MultipleHeader | b3.B3SingleHeader))
	ctx := local(t, traceT, spanS, true)
	p.Inject(ctx, propagation.HeaderCarrier(h))
	for name, value := range injected(ctx, p) {
		h.Add(name, "added")
		if got := h.Values(name); !slices.Equal(got, []string{value, "added"}) {
			t.Errorf("%s is %q", name, got)
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
	for _, c := range rules(f) {
		add(c.Incoming)
	}
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
