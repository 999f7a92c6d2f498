package xtraceid_test

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func TestUntrusted(t *testing.T) {
	ours := traceID(t, traceT)
	verify := func(id trace.TraceID) bool {
		if !id.IsValid() {
			t.Error("verify was called without an ID")
		}
		return id == ours
	}
	cases := []struct {
		name   string
		sc     trace.SpanContext
		verify func(trace.TraceID) bool
		want   bool
	}{
		{"ours", spanContext(t, traceT, spanS, true), verify, false},
		{"another's", spanContext(t, traceU, spanS, true), verify, true},
		{"another's, no parent", spanContext(t, traceU, "", false), verify, true},
		{"no trace ID", trace.SpanContext{}, verify, false},
		{"no trace ID, remote", trace.SpanContext{}.WithRemote(true), verify, false},
		{"span of this process", spanContext(t, traceU, spanS, true).WithRemote(false), verify, false},
		{"no verifier", spanContext(t, traceT, spanS, true), nil, true},
		{"no verifier, no trace ID", trace.SpanContext{}, nil, false},
	}
	for _, c := range cases {
		r := new(http.Request).WithContext(trace.ContextWithSpanContext(t.Context(), c.sc))
		if got := xtraceid.Untrusted(c.verify)(r); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
