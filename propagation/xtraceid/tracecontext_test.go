package xtraceid_test

import (
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// Services with both propagators send the same span in three forms. B3 has neither tracestate nor
// random flag and must not remove them.
func TestKeepsTheTraceContextSpan(t *testing.T) {
	const (
		id, other    = "32d1f0a9c8000005a1b2c3d4e5f60718", "4bf92f3577b34da6a3ce929d0e0e4736"
		span, parent = "53995c3f42cd8ad8", "00f067aa0ba902b7"
	)
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	for _, c := range []struct {
		name, traceparent, xTraceID, b3 string
		want                            string
	}{
		{"the same span in three forms", "00-" + id + "-" + span + "-03", id, id + "-" + span + "-1", id + "-" + span + "-03 v=1"},
		{"B3 shortened", "00-" + id + "-" + span + "-03", id, id[16:] + "-" + span + "-1", id + "-" + span + "-03 v=1"},
		{"B3 names another parent", "00-" + id + "-" + span + "-03", id, id + "-" + parent + "-1", id + "-" + parent + "-01 "},
		{"no B3", "00-" + id + "-" + span + "-03", id, "", id + "-" + span + "-03 v=1"},
		{"traceparent of another trace", "00-" + other + "-" + span + "-03", id, "", id + "-0000000000000000-00 "},
		{"traceparent alone", "00-" + id + "-" + span + "-03", "", "", id + "-" + span + "-03 v=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			carrier := propagation.MapCarrier{"traceparent": c.traceparent, "tracestate": "v=1"}
			if c.xTraceID != "" {
				carrier["x-trace-id"] = c.xTraceID
			}
			if c.b3 != "" {
				carrier["b3"] = c.b3
			}
			sc := trace.SpanContextFromContext(both.Extract(t.Context(), carrier))
			got := sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String() + " " + sc.TraceState().String()
			if got != c.want || !sc.IsRemote() {
				t.Errorf("got %s, remote %v, want %s", got, sc.IsRemote(), c.want)
			}
		})
	}
}
