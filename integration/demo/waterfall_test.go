package main

import (
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

func sample(change func([]span)) found {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ms int, id, parent, service, name, status string, took time.Duration) span {
		return span{Timestamp: start.Add(time.Duration(ms) * time.Millisecond), SpanID: id, ParentSpanID: parent, ServiceName: service,
			SpanName: name, Duration: uint64(took), StatusCode: status, StatusMessage: strings.ToLower(status)}
	}
	ms := time.Millisecond
	spans := []span{
		at(6, "d", "b", "orders", "insert", "Error", 2*ms),
		at(0, "a", "elsewhere", "edge", "GET /", "Unset", 10*ms),
		at(2, "b", "a", "edge", "call", "Unset", 7*ms),
		at(3, "c", "b", "orders", "select", "Unset", 2*ms),
		at(9, "e", "a", "edge", "é", "Unset", 0),
	}
	change(spans)
	return found{
		drawing: draw(spans), ID: traceid.Min(start.Add(-2 * ms)), Decoded: "node 7", Dated: true,
		Costs: []costs{{"One trace by its ID", []costRow{{"granules", "%.0f", 1, 4}, {"milliseconds", "%.1f", 2, 3}}}}, Measured: "Measured so.",
	}
}

func TestWaterfall(t *testing.T) {
	for name, want := range map[string]string{"GET /": `
edge    GET /       10.00 ms  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
edge    ├ call       7.00 ms                  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
orders  │ ├ select   2.00 ms                          ━━━━━━━━━━━━━━━━
orders  │ └ insert   2.00 ms                                                  ━━━━━━━━━━━━━━━━ error
edge    └ é          0.00 ms                                                                          ━

5 spans in 10.00 ms.
The ID was made at 2026-01-02 03:04:04.998 UTC; the first span began 2.00 ms later. Decoded: node 7.

  One trace by its ID  sorted by trace ID  the Collector's own schema
  granules             1                   4
  milliseconds         2.0                 3.0

  Measured so.

`, strings.Repeat("é", 60): "\nedge    " + strings.Repeat("é", 49) + "…  10.00 ms  ━"} {
		var out strings.Builder
		waterfall(&out, sample(func(s []span) { s[1].SpanName = name }))
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("got:\n%s\nwant:\n%s", &out, want)
		}
	}
}

// Spans whose parents form a cycle are shown too, once each.
func TestEachSpanIsDrawnOnce(t *testing.T) {
	got := ""
	for _, l := range draw([]span{
		{SpanID: "a", ParentSpanID: "b"}, {SpanID: "b", ParentSpanID: "a"}, {SpanID: "c", ParentSpanID: "c"}, {SpanID: "d"}, {SpanID: "e", ParentSpanID: "b"},
	}).Lines {
		got += l.branch + l.SpanID + " "
	}
	if want := "d a └ b   └ e c "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
