package xtraceid_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const both = b3.B3SingleHeader | b3.B3MultipleHeader

func local(tb testing.TB, traceHex, spanHex string, sampled bool) context.Context {
	return trace.ContextWithSpanContext(context.Background(), spanContext(tb, traceHex, spanHex, sampled).WithRemote(false))
}

// Fields lists exactly what Inject writes: each field is written for some span.
func TestInject(t *testing.T) {
	const zeroLow = "32d1f0a9c80000050000000000000000"
	type fields = propagation.MapCarrier
	short := []xtraceid.Option{xtraceid.WithB3TraceID64()}
	single := []xtraceid.Option{xtraceid.WithB3Encoding(b3.B3SingleHeader)}

	cases := []struct {
		name string
		ctx  context.Context
		opts []xtraceid.Option
		want fields
	}{
		{"no span", context.Background(), nil, fields{}},
		{"span ID only", local(t, "", spanS, true), nil, fields{}},
		{"span ID only, remote", trace.ContextWithRemoteSpanContext(t.Context(), spanContext(t, "", spanS, true)), nil, fields{}},
		{"trace ID only, made here", local(t, traceT, "", true), nil, fields{}},
		{"trace ID only, forwarded", extract(headers("x-trace-id", traceT)), nil, fields{"x-trace-id": traceT}},
		{"another trace's B3, forwarded", extract(headers(with(multi(traceU, spanS, ""), "x-trace-id", traceT)...)), nil, fields{"x-trace-id": traceT}},

		{"sampled", local(t, traceT, spanS, true), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"not sampled", local(t, traceT, spanS, false), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "0"}},
		{"single", local(t, traceT, spanS, true), single,
			fields{"x-trace-id": traceT, "b3": traceT + "-" + spanS + "-1"}},
		{"both", local(t, traceT, spanS, false), []xtraceid.Option{xtraceid.WithB3Encoding(both)},
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "0", "b3": traceT + "-" + spanS + "-0"}},
		{"unspecified encoding", local(t, traceT, spanS, true), []xtraceid.Option{xtraceid.WithB3Encoding(b3.B3Unspecified)},
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"header name", local(t, traceT, spanS, true), []xtraceid.Option{xtraceid.WithHeader("Trace"), xtraceid.WithB3Encoding(b3.B3SingleHeader)},
			fields{"Trace": traceT, "b3": traceT + "-" + spanS + "-1"}},

		{"64-bit", local(t, traceT, spanS, true), short,
			fields{"x-trace-id": traceT, "x-b3-traceid": lowT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"64-bit, both", local(t, traceT, spanS, true), withOpts(short, xtraceid.WithB3Encoding(both)),
			fields{"x-trace-id": traceT, "x-b3-traceid": lowT, "x-b3-spanid": spanS, "x-b3-sampled": "1", "b3": lowT + "-" + spanS + "-1"}},
		{"64-bit, low half zero", local(t, zeroLow, spanS, true), short,
			fields{"x-trace-id": zeroLow, "x-b3-traceid": zeroLow, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},

		{"open, forwarded", extract(headers(multi(traceT, spanS, "")...)), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS}},
		{"open, forwarded, single", extract(headers(multi(traceT, spanS, "")...)), single,
			fields{"x-trace-id": traceT, "b3": traceT + "-" + spanS}},
		{"open, then decided here", span(extract(headers(multi(traceT, spanP, "")...)), t, true), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"debug", span(extract(headers(with(multi(lowT, spanP, ""), "x-trace-id", traceT, "X-B3-Flags", "1")...)), t, true), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-flags": "1"}},
		{"debug, single", span(extract(headers("x-trace-id", traceT, "b3", "d")), t, true), single,
			fields{"x-trace-id": traceT, "b3": traceT + "-" + spanS + "-d"}},
		{"debug, both", span(extract(headers("b3", traceT+"-"+spanP+"-d")), t, true), []xtraceid.Option{xtraceid.WithB3Encoding(both)},
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-flags": "1", "b3": traceT + "-" + spanS + "-d"}},
	}
	written := map[string]fields{} // by the result of Fields
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fields{}
			p := xtraceid.New(c.opts...)
			p.Inject(c.ctx, got)
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			names := strings.Join(p.Fields(), " ")
			if written[names] == nil {
				written[names] = fields{}
			}
			maps.Copy(written[names], got)
			h := http.Header{}
			p.Inject(c.ctx, propagation.HeaderCarrier(h))
			want := http.Header{}
			for k, v := range c.want {
				want.Set(k, v)
			}
			if !maps.EqualFunc(h, want, slices.Equal) {
				t.Errorf("http.Header: got  %v\nwant %v", h, want)
			}
		})
	}
	for names, all := range written {
		want := strings.Fields(names)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
			t.Errorf("Inject writes %q, Fields returns %q", got, names)
		}
	}
}

func withOpts(opts []xtraceid.Option, more ...xtraceid.Option) []xtraceid.Option {
	return append(append([]xtraceid.Option(nil), opts...), more...)
}

// span continues the trace of ctx in a span made here, as an SDK does.
func span(ctx context.Context, tb testing.TB, sampled bool) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	return trace.ContextWithSpanContext(ctx, sc.WithSpanID(spanID(tb, spanS)).
		WithTraceFlags(sc.TraceFlags().WithSampled(sampled)).WithRemote(false))
}

// Inject followed by Extract returns the same span context, with each combination of options.
func TestRoundTrip(t *testing.T) {
	options := []xtraceid.Option{
		xtraceid.WithB3Encoding(b3.B3SingleHeader), xtraceid.WithB3Encoding(both), xtraceid.WithHeader("X-Other"),
		xtraceid.WithB3TraceID64(), xtraceid.WithDeferredSampled(), xtraceid.WithVerifier(func(trace.TraceID) bool { return true }),
	}
	for set := range 1 << len(options) {
		var opts []xtraceid.Option
		for i, o := range options {
			if set>>i&1 != 0 {
				opts = append(opts, o)
			}
		}
		t.Run(fmt.Sprintf("%06b", set), func(t *testing.T) {
			roundTrip(t, rand.NewChaCha8([32]byte{}), xtraceid.New(opts...))
		})
	}
}

func roundTrip(t *testing.T, r *rand.ChaCha8, p propagation.TextMapPropagator) {
	for i := range 160 {
		cfg := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(i & 1)}
		_, _ = r.Read(cfg.TraceID[:])
		_, _ = r.Read(cfg.SpanID[:])
		switch i / 2 % 4 { // edge cases: a half that is zero
		case 1:
			clear(cfg.TraceID[:8])
		case 2:
			clear(cfg.TraceID[8:])
		}
		cfg.Remote = i&8 != 0
		sc := trace.NewSpanContext(cfg)
		if !sc.IsValid() {
			t.Fatal("the test made an invalid span context")
		}
		for _, carrier := range []propagation.TextMapCarrier{propagation.MapCarrier{}, propagation.HeaderCarrier{}} {
			p.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
			got := trace.SpanContextFromContext(p.Extract(context.Background(), carrier))
			if !got.Equal(sc.WithRemote(true)) {
				t.Fatalf("%v: got %s, want %s", carrier, show(got), show(sc.WithRemote(true)))
			}
		}
	}
}

// reports collects what is reported to otel.Handle until the test ends.
func reports(t *testing.T) (reported *error) {
	previous := otel.GetErrorHandler()
	t.Cleanup(func() { otel.SetErrorHandler(previous) })
	reported = new(error)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { *reported = errors.Join(*reported, err) }))
	return reported
}

func TestBadOptions(t *testing.T) {
	type bad struct {
		name string
		opt  xtraceid.Option
		want string // in the reported error
	}
	cases := []bad{
		{"empty header", xtraceid.WithHeader(""), `""`},
		{"header with a line break", xtraceid.WithHeader("x\r\ny"), `"x\r\ny": it is not an HTTP field name`},
		{"encoding", xtraceid.WithB3Encoding(1), "encoding 0x1"},
		{"encoding, partly unknown", xtraceid.WithB3Encoding(b3.B3SingleHeader | 1), "encoding 0x5"},
	}
	for _, name := range []string{"B3", "X-B3-TraceId", "x-b3-spanid", "X-B3-ParentSpanId", "X-B3-Sampled", "X-B3-Flags"} {
		cases = append(cases, bad{"header " + name, xtraceid.WithHeader(name), "B3 uses it"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reported := reports(t)
			p := xtraceid.New(c.opt)
			if err := *reported; err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("reported %v, want one error with %s", err, c.want)
			}
			if got, want := p.Fields(), xtraceid.New().Fields(); !slices.Equal(got, want) {
				t.Errorf("Fields %q, want the default's %q", got, want)
			}
		})
	}
}

// The characters of a token in RFC 9110. A valid name is used as given, and nothing is reported.
func TestHeaderNames(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range 0x100 {
		name, reported := "x"+string([]byte{byte(c)}), reports(t)
		got := xtraceid.New(xtraceid.WithHeader(name), xtraceid.WithB3Encoding(both), xtraceid.WithB3Encoding(0)).Fields()[0]
		if good := strings.IndexByte(token, byte(c)) >= 0; (got == name) != good || (*reported == nil) != good {
			t.Errorf("with the name %q, %q is used; reported %v", name, got, *reported)
		}
	}
}
