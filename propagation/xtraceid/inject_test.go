package xtraceid_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func local(tb testing.TB, traceHex, spanHex string, sampled bool) context.Context {
	sc := spanContext(tb, traceHex, spanHex, sampled).WithRemote(false)
	return trace.ContextWithSpanContext(context.Background(), sc)
}

const zeroLow = "32d1f0a9c80000050000000000000000"

// fields are headers that Inject writes.
type fields = propagation.MapCarrier

// several are the fields of x-trace-id and of B3's separate headers, whose decision is that of
// the header b3.
func several(id, b3ID, decision string) fields {
	f := fields{"x-trace-id": id, "x-b3-traceid": b3ID, "x-b3-spanid": spanS}
	switch decision {
	case "":
	case "d":
		f["x-b3-flags"] = "1"
	default:
		f["x-b3-sampled"] = decision
	}
	return f
}

// Fields lists exactly what Inject writes: each field is written for some span.
func TestInject(t *testing.T) {
	short := []xtraceid.Option{xtraceid.WithB3TraceID64()}
	single := []xtraceid.Option{xtraceid.WithB3Encoding(b3.B3SingleHeader)}
	both := []xtraceid.Option{xtraceid.WithB3Encoding(b3.B3SingleHeader | b3.B3MultipleHeader)}
	one := func(b3 string) fields { return fields{"x-trace-id": traceT, "b3": b3} }

	ofSpanID := trace.ContextWithRemoteSpanContext(t.Context(), spanContext(t, "", spanS, true))
	alone := extract(headers("x-trace-id", traceT))
	another := extract(headers(append(multi(traceU, spanS, ""), "x-trace-id", traceT)...))
	open := extract(headers(multi(traceT, spanS, "")...))
	openHere := span(extract(headers(multi(traceT, spanP, "")...)), t, traceT, true)
	flagged := append(multi(lowT, spanP, ""), "X-B3-Flags", "1")
	debug := extract(headers(append(flagged, "x-trace-id", traceT)...))
	inOne := extract(headers("b3", traceU+"-"+spanP+"-d-"+spanS))
	atEnd := extract(headers("b3", traceU+"-"+spanP+"-d"))

	cases := []struct {
		name string
		ctx  context.Context
		opts []xtraceid.Option
		want fields
	}{
		{"no span", context.Background(), nil, fields{}},
		{"span ID only", local(t, "", spanS, true), nil, fields{}},
		{"span ID only, remote", ofSpanID, nil, fields{}},
		{"trace ID only, from here", local(t, traceT, "", true), nil, fields{}},
		{"trace ID only, forwarded", alone, nil, fields{"x-trace-id": traceT}},
		{"another trace's B3, forwarded", another, nil, fields{"x-trace-id": traceT}},

		{"sampled", local(t, traceT, spanS, true), nil, several(traceT, traceT, "1")},
		{"not sampled", local(t, traceT, spanS, false), nil, several(traceT, traceT, "0")},
		{"header name", local(t, traceT, spanS, true),
			[]xtraceid.Option{xtraceid.WithHeader("Trace")},
			fields{"Trace": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS,
				"x-b3-sampled": "1"}},

		{"64-bit", local(t, traceT, spanS, true), short, several(traceT, lowT, "1")},
		{"64-bit, low half zero", local(t, zeroLow, spanS, true), short,
			several(zeroLow, zeroLow, "1")},
		{"64-bit, one header", local(t, traceT, spanS, true), append(single, short...),
			one(lowT + "-" + spanS + "-1")},

		{"open, forwarded", open, nil, several(traceT, traceT, "")},
		{"open, then decided here", openHere, nil, several(traceT, traceT, "1")},
		{"open, forwarded in one header", open, single, one(traceT + "-" + spanS)},
		{"open, then decided here, in one header", openHere, single,
			one(traceT + "-" + spanS + "-1")},
		{"both encodings", local(t, traceT, spanS, false), both,
			fields{"x-trace-id": traceT, "x-b3-traceid": traceT, "x-b3-spanid": spanS,
				"x-b3-sampled": "0", "b3": traceT + "-" + spanS + "-0"}},

		{"debug", span(debug, t, traceT, true), nil, several(traceT, traceT, "d")},
		{"debug in one header", span(debug, t, traceT, true), single,
			one(traceT + "-" + spanS + "-d")},
		// Such a trace begins here because the caller's was refused.
		{"debug, another trace", span(debug, t, traceU, false), nil, several(traceU, traceU, "0")},
		{"debug, another trace, at the end", span(atEnd, t, traceT, true), nil,
			several(traceT, traceT, "1")},
		{"debug, another trace, in one header", span(inOne, t, traceT, true), single,
			one(traceT + "-" + spanS + "-1")},
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
			// Over HTTP, where stale headers are replaced.
			h := http.Header{"X-B3-Spanid": {"stale", "1"}}
			want := h.Clone()
			p.Inject(c.ctx, propagation.HeaderCarrier(h))
			for name, value := range c.want {
				want.Set(name, value)
			}
			if !maps.EqualFunc(h, want, slices.Equal) {
				t.Errorf("over HTTP: got  %v\nwant %v", h, want)
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

// span starts a span in ctx as an SDK does, in the given trace.
func span(ctx context.Context, tb testing.TB, id string, sampled bool) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	return trace.ContextWithSpanContext(ctx, sc.WithTraceID(traceID(tb, id)).
		WithSpanID(spanID(tb, spanS)).
		WithTraceFlags(sc.TraceFlags().WithSampled(sampled)).WithRemote(false))
}
