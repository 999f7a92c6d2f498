package xtraceid_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func local(tb testing.TB, traceHex, spanHex string, sampled bool) context.Context {
	return trace.ContextWithSpanContext(context.Background(), spanContext(tb, traceHex, spanHex, sampled).WithRemote(false))
}

const zeroLow = "32d1f0a9c80000050000000000000000"

// Fields lists exactly what Inject writes: each field is written for some span.
func TestInject(t *testing.T) {
	type fields = propagation.MapCarrier
	short := []xtraceid.Option{xtraceid.WithB3TraceID64()}

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
		{"header name", local(t, traceT, spanS, true), []xtraceid.Option{xtraceid.WithHeader("Trace")},
			fields{"Trace": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},

		{"64-bit", local(t, traceT, spanS, true), short,
			fields{"x-trace-id": traceT, "x-b3-traceid": lowT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"64-bit, low half zero", local(t, zeroLow, spanS, true), short,
			fields{"x-trace-id": zeroLow, "x-b3-traceid": zeroLow, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},

		{"open, forwarded", extract(headers(multi(traceT, spanS, "")...)), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS}},
		{"open, then decided here", span(extract(headers(multi(traceT, spanP, "")...)), t, true), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-sampled": "1"}},
		{"debug", span(extract(headers(with(multi(lowT, spanP, ""), "x-trace-id", traceT, "X-B3-Flags", "1")...)), t, true), nil,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS, "x-b3-flags": "1"}},
	}
	written := fields{} // without options
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fields{}
			p := xtraceid.New(c.opts...)
			p.Inject(c.ctx, got)
			if !maps.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if c.opts == nil {
				maps.Copy(written, got)
			}
		})
	}
	got, want := slices.Sorted(maps.Keys(written)), xtraceid.New().Fields()
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("Inject writes %q, Fields returns %q", got, want)
	}
}

// span continues the trace of ctx in a span made here, as an SDK does.
func span(ctx context.Context, tb testing.TB, sampled bool) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	return trace.ContextWithSpanContext(ctx, sc.WithSpanID(spanID(tb, spanS)).
		WithTraceFlags(sc.TraceFlags().WithSampled(sampled)).WithRemote(false))
}

// The characters of a token in RFC 9110, and the names of B3. A valid name is used as given;
// another one is reported, and the default is used.
func TestHeaderNames(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	good := map[string]bool{"": false, "B3": false, "X-B3-TraceId": false, "x-b3-sampled": false, "x-b3": true}
	for c := range 0x100 {
		good["x"+string([]byte{byte(c)})] = strings.IndexByte(token, byte(c)) >= 0
	}
	previous := otel.GetErrorHandler()
	defer otel.SetErrorHandler(previous)
	for name, good := range good {
		var reported error
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = errors.Join(reported, err) }))
		want := name
		if !good {
			want = xtraceid.DefaultHeader
		}
		if got := xtraceid.New(xtraceid.WithHeader(name)).Fields()[0]; got != want || (reported == nil) != good ||
			reported != nil && (!strings.Contains(reported.Error(), strconv.Quote(name)) || strings.Contains(reported.Error(), "\n")) {
			t.Errorf("with the name %q, %q is used; reported %v", name, got, reported)
		}
	}
}
