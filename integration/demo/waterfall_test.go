package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

func sample() found {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ms int, id, parent, service, name, status string, took time.Duration) span {
		return span{Timestamp: start.Add(time.Duration(ms) * time.Millisecond), SpanID: id, ParentSpanID: parent, ServiceName: service,
			SpanName: name, Duration: uint64(took), StatusCode: status, StatusMessage: strings.ToLower(status)}
	}
	ms := time.Millisecond
	return found{
		id: traceid.Min(start.Add(-2 * ms)), decoded: "node 7", dated: true,
		costs: []costs{{"One trace by its ID", cost{1, 500_000, 2 * ms}, cost{4, 2_000_000, 3 * ms}}}, measured: "Measured so.",
		spans: []span{
			at(6, "d", "b", "orders", "insert", "Error", 2*ms),
			at(0, "a", "elsewhere", "edge", "GET /", "Unset", 10*ms),
			at(2, "b", "a", "edge", "call", "Unset", 7*ms),
			at(3, "c", "b", "orders", "select", "Unset", 2*ms),
			at(9, "e", "a", "edge", "é", "Unset", 0),
		},
	}
}

func TestWaterfall(t *testing.T) {
	var out bytes.Buffer
	(&screen{Writer: &out, width: 60}).waterfall(sample())
	const want = `
edge    GET /       10.00 ms  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
edge    ├ call       7.00 ms        ━━━━━━━━━━━━━━━━━━━━━
orders  │ ├ select   2.00 ms           ━━━━━━
orders  │ └ insert   2.00 ms                    ━━━━━━ error
edge    └ é          0.00 ms                             ━

5 spans in 10.00 ms.
The ID was made at 2026-01-02 03:04:04.998 UTC; the first span began 2.00 ms later. Decoded: node 7.

  One trace by its ID
               sorted by trace ID     the Collector's own schema
  granules           1 ███                  4 █████████████
  megabytes        0.5 ███                2.0 █████████████
  milliseconds     2.0 ████████           3.0 █████████████

  Measured so.

`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}

func TestWaterfallOnANarrowTerminal(t *testing.T) {
	var out bytes.Buffer
	narrow := sample()
	narrow.spans[1].SpanName = "GET /somewhere/else"
	(&screen{Writer: &out, width: 42}).waterfall(narrow)
	const want = `
edge    GET /somewh…  10.00 ms  ━━━━━━━━━━
edge    ├ call         7.00 ms    ━━━━━━━
`
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}

func TestWaterfallOfOtherIDs(t *testing.T) {
	var out bytes.Buffer
	foreign := sample()
	foreign.id, foreign.dated = trace.TraceID{0xff}, false
	(&screen{Writer: &out, width: 60, colour: true}).waterfall(foreign)
	for _, want := range []string{"granules", "\x1b[31m error\x1b[0m", "\x1b[34medge", "\x1b[35morders"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
}

// Spans whose parents form a cycle are shown too, once each.
func TestArrangeShowsEachSpanOnce(t *testing.T) {
	lines := arrange([]span{
		{SpanID: "a", ParentSpanID: "b"}, {SpanID: "b", ParentSpanID: "a"}, {SpanID: "c", ParentSpanID: "c"}, {SpanID: "d"}, {SpanID: "e", ParentSpanID: "b"},
	})
	got := ""
	for _, l := range lines {
		got += l.label() + l.SpanID + " "
	}
	if want := "d a └ b   └ e c "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
