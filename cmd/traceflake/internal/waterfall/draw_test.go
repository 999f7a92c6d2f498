package waterfall_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
	"github.com/traceflake/traceflake/traceid"
)

var (
	began = time.Date(2026, 11, 23, 6, 3, 9, 0, time.UTC)
	id    = traceid.Min(began)
)

// span is a span of a test. Its times are milliseconds after the trace began.
type span struct {
	id, parent    byte
	service, name string
	start, end    int
	failed        bool
}

// row is the span as ClickHouse has it.
func (s span) row() waterfall.Span {
	hex := func(id byte) string { return fmt.Sprintf("%016x", id) }
	r := waterfall.Span{SpanID: hex(s.id), ParentSpanID: hex(s.parent), ServiceName: s.service,
		SpanName: s.name, Timestamp: began.Add(time.Duration(s.start) * time.Millisecond),
		Duration: uint64(s.end-s.start) * 1e6}
	if s.failed {
		r.StatusCode = "STATUS_CODE_ERROR"
	}
	return r
}

func draw(t *testing.T, w *waterfall.Trace, o waterfall.Options, rows ...waterfall.Span) string {
	t.Helper()
	for _, r := range rows {
		w.Add(r)
	}
	var b strings.Builder
	if err := w.Draw(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rows(spans ...span) (all []waterfall.Span) {
	for _, s := range spans {
		all = append(all, s.row())
	}
	return all
}

func TestDraw(t *testing.T) {
	shop := []span{
		{4, 2, "stock", "SELECT", 500, 750, true},
		{2, 1, "cart", "GET /cart", 250, 1000, false},
		{1, 0, "gateway", "GET /", 0, 1000, false},
		{3, 2, "prices", "GET /prices", 250, 500, false},
	}
	for _, c := range []struct {
		name  string
		spans []span
		o     waterfall.Options
		want  string
	}{
		{"tree", shop, waterfall.Options{Width: 75}, `trace 19544cb0a40000000000000000000000
  4 spans in 4 services, 1s
  ! 1 span failed
  first span  2026-11-23T06:03:09.000Z, 0s after the ID's time 2026-11-23T06:03:09.000Z

  SERVICE          SPAN                      0s                 1s DURATION
  gateway          GET /                     █████████████████████       1s
  cart              GET /cart                     ████████████████    750ms
  prices             GET /prices                  █████               250ms
! stock              SELECT                            █████          250ms
`},
		{"some", shop, waterfall.Options{Spans: 1, Color: true}, "1s\n  … and 3 spans more\n"},
		{"red", shop, waterfall.Options{Color: true}, "\x1b[31m! stock  "},
		{"missing parent", []span{{2, 9, "a", "b", 5, 6, false}}, waterfall.Options{},
			"\n  a                b "},
		{"its own parent", []span{{2, 2, "a", "b", 5, 6, false}}, waterfall.Options{},
			"\n  a                b "},
		{"cycle", []span{{1, 2, "a", "one", 5, 6, false}, {2, 1, "a", "two", 4, 6, false}},
			waterfall.Options{}, "\n  a                two  "},
		{"the same span twice", []span{{1, 0, "a", "root", 0, 6, false},
			{1, 0, "a", "root", 0, 6, false}, {2, 1, "a", "child", 1, 6, false}},
			waterfall.Options{}, "6ms\n  a                 child  "},
		{"ends before it starts", []span{{1, 0, "a", "b", 9, 2, false}}, waterfall.Options{},
			" 0s\n"},
		{"escape codes", []span{{1, 0, "a\x1b[2J", "b\nc\xff", 1, 2, false}}, waterfall.Options{},
			"a\ufffd[2J            b\ufffdc\ufffd "},
		{"wide characters", []span{{1, 0, "注文", "買い物", 1, 2, false}}, waterfall.Options{},
			"  注文             買い物 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := draw(t, waterfall.New(id, false), c.o, rows(c.spans...)...)
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestWidth: whatever the spans are, each line of the tree is as wide as the terminal.
func TestWidth(t *testing.T) {
	var spans []span
	for i := range 120 { // a chain
		spans = append(spans,
			span{byte(i + 1), byte(i), strings.Repeat("s", i), strings.Repeat("n", i), i, i + 100,
				false})
	}
	for _, width := range []int{0, 60, 80, 133} {
		_, tree, _ := strings.Cut(draw(t, waterfall.New(id, false),
			waterfall.Options{Width: width}, rows(spans...)...), "\n\n")
		for line := range strings.Lines(tree) {
			if got := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); got != max(width, 60) {
				t.Fatalf("a line has %d columns, want %d:\n%s", got, width, tree)
			}
		}
	}
}

// TestFarTimes: spans of any times are drawn, even if they lie further apart than a Duration lasts.
func TestFarTimes(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	ages := []time.Time{first, time.Unix(-1, 0), time.Unix(0, 0), began, last}
	for _, start := range ages {
		for _, end := range ages {
			all := rows(span{id: 1, name: "one"}, span{id: 2, parent: 1, name: "two"},
				span{id: 3, parent: 1, name: "three"})
			for i, at := range []time.Time{start, end, began} {
				all[i].Timestamp, all[i].Duration = at, uint64(max(0, end.Sub(at)))
			}
			drawn := draw(t, waterfall.New(id, false), waterfall.Options{}, all...)
			if end.Sub(start) > time.Hour && strings.Contains(drawn, " 0s DURATION") ||
				strings.Contains(drawn, " -") {
				t.Errorf("%s to %s:\n%s", start, end, drawn)
			}
		}
	}
}

// TestDetails: why spans failed is drawn, with details also attributes, events and links, in lines
// as they were written, and what a resource is once. An ID of 64 bits has no time.
func TestDetails(t *testing.T) {
	all := rows(span{1, 0, "shop", "GET /", 0, 9, false}, span{2, 1, "stock", "take", 1, 5, true},
		span{3, 1, "bank", "pay", 2, 8, true})
	all[0].LinksTraceID, all[0].LinksSpanID = []string{"19544cb0a4"}, []string{"00f067aa"}
	all[0].LinksAttributes = []map[string]string{{"messaging.batch": "7"}}
	all[0].SpanAttributes = map[string]string{"user": "👩\u200d💻"}
	all[1].StatusMessage, all[1].StatusCode = "out of\nstock\n", "Error"
	all[1].SpanAttributes = map[string]string{"db.statement": "SELECT 1\r\n\tFROM x\n"}
	for i := range all {
		all[i].ResourceAttributes = map[string]string{"k8s.pod.name": "shop-7"}
	}
	bank := &all[2]
	bank.EventsName = []string{"exception", "of which a view has no attributes"}
	bank.EventsTimestamp = []time.Time{bank.Timestamp.Add(time.Millisecond), bank.Timestamp}
	bank.EventsAttributes = []map[string]string{{"exception.message": "refused",
		"exception.stacktrace": "main.go:1\nbank.go:2"}}
	drawn := draw(t, waterfall.New(trace.TraceID{15: 1}, true), waterfall.Options{}, all...)
	for _, want := range []string{`9ms
    user = 👩` + "\u200d" + `💻
    link to span 00f067aa of trace 19544cb0a4
      messaging.batch = 7
    resource:
      k8s.pod.name = shop-7
! stock `, `
    out of
    stock
    db.statement =
      SELECT 1
       FROM x
! bank `, `
    refused
    exception after 1ms
      exception.message = refused
      exception.stacktrace =
        main.go:1
        bank.go:2
`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in\n%s", want, drawn)
		}
	}
	if strings.Contains(drawn, "ID's time") {
		t.Errorf("64 bits have a time:\n%s", drawn)
	}
}

// TestHostileDetails: nothing that a span contains moves the cursor, hides text, turns it around or
// looks like a line of another span.
func TestHostileDetails(t *testing.T) {
	for _, hostile := range []string{"\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://x\a", "\r", "\b",
		"\x00", "\x7f", "\v", "\f", "\u0085", "\u009b2J", "\u2028", "\u2029", "\u202e", "\u2066",
		"\u200b", "\ufeff", "\u00ad", "\u061c", "\U000e0041", "\xff", "\xc0\x80"} {
		text := "a" + hostile + "b"
		all := rows(span{1, 0, text, text, 0, 9, true})
		s := &all[0]
		s.StatusMessage, s.SpanAttributes = text, map[string]string{text: text}
		s.ResourceAttributes = map[string]string{text: text}
		s.EventsName, s.EventsTimestamp = []string{text}, []time.Time{s.Timestamp}
		s.EventsAttributes = []map[string]string{{text: text}}
		s.LinksTraceID, s.LinksSpanID = []string{text}, []string{text}
		s.LinksAttributes = s.EventsAttributes
		drawn := draw(t, waterfall.New(id, true), waterfall.Options{}, all...)
		if strings.Contains(drawn, hostile) || !strings.Contains(drawn, "a\ufffd") {
			t.Errorf("%q is drawn:\n%q", hostile, drawn)
		}
	}
	all := rows(span{1, 0, "shop", "GET /", 0, 9, true})
	all[0].StatusMessage = "x\n! bank             pay"
	drawn := draw(t, waterfall.New(id, true), waterfall.Options{}, all...)
	if strings.Contains(drawn, "\n! bank") {
		t.Errorf("a message looks like a span:\n%s", drawn)
	}
}
