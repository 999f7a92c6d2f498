package waterfall_test

import (
	"fmt"
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

const hour = 3600 * 1000

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
		{"tree", shop, waterfall.Options{Width: 70}, `trace 19544cb0a40000000000000000000000
  4 spans in 4 services, 1s
  ! 1 span failed
  ID's time   2026-11-23T06:03:09.000Z
  first span  2026-11-23T06:03:09.000Z, 0s after it

   SERVICE SPAN          0s                                1s DURATION
   gateway GET /         ████████████████████████████████████       1s
   cart     GET /cart             ███████████████████████████    750ms
   prices    GET /prices          █████████                      250ms
!  stock     SELECT                        █████████             250ms
`},
		{"some", shop, waterfall.Options{Width: 60, Spans: 1, Color: true},
			"   … and 3 spans more, of which 1 failed\n\x1b[31m!  stock "},
		{"red", shop, waterfall.Options{Width: 60, Color: true}, "\x1b[31m!  stock "},
		{"missing parent", []span{{2, 9, "a", "b", 5, 6, false}}, waterfall.Options{},
			"\n   a       b "},
		{
			"its own parent", []span{{2, 2, "a", "b", 5, 6, false}}, waterfall.Options{},
			"\n   a       b ",
		},
		{
			"cycle", []span{{1, 2, "a", "one", 5, 6, false}, {2, 1, "a", "two", 4, 6, false}},
			waterfall.Options{}, "\n   a       two  ",
		},
		{
			"the same span twice", []span{
				{1, 0, "a", "root", 0, 6, false}, {1, 0, "a", "root", 0, 6, false},
				{2, 1, "a", "child", 1, 6, false},
			}, waterfall.Options{}, "6ms\n   a        child  ",
		},
		{
			"late", []span{{1, 0, "a", "b", 1, 2, false},
				{2, 1, "a", "c", 26 * hour, 27 * hour, false}},
			waterfall.Options{}, "\n ~ a        c ",
		},
		{
			"foreign", []span{{1, 0, "a", "b", 26 * hour, 27 * hour, false}}, waterfall.Options{},
			"first span  2026-11-24T08:03:09.000Z, 26h0m0s after it\n" +
				"  the time in the ID is not that of the spans",
		},
		{
			"ends before it starts", []span{{1, 0, "a", "b", 9, 2, false}}, waterfall.Options{},
			" 0s\n",
		},
		{
			"escape codes", []span{{1, 0, "a\x1b[2J", "b\nc\xff", 1, 2, false}},
			waterfall.Options{},
			"a\ufffd[2J   b\ufffdc\ufffd ",
		},
		{"wide characters", []span{{1, 0, "注文", "買い物", 1, 2, false}}, waterfall.Options{},
			"   注文    買い物 "},
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
			if got := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); got != max(width,
				waterfall.MinWidth) {
				t.Fatalf("a line has %d columns, want %d:\n%s", got, width, tree)
			}
		}
	}
}

// Why spans failed is drawn, also of those beyond the limit, and with details their attributes and
// events. An ID of 64 bits has no time from which spans could be late.
func TestFailures(t *testing.T) {
	all := rows(span{1, 0, "shop", "GET /", 0, 9, false}, span{2, 1, "stock", "take", 1, 5, true},
		span{3, 1, "bank", "pay", 2, 8, true}, span{4, 1, "shop", "check", 0, 1, false})
	all[1].StatusMessage, all[1].StatusCode = "out of stock", "Error"
	bank := &all[2]
	bank.SpanAttributes = map[string]string{"bank": "B\x1b[2J"}
	bank.EventsName = []string{"exception", "of which a view has no attributes"}
	bank.EventsTimestamp = []time.Time{bank.Timestamp.Add(time.Millisecond), bank.Timestamp}
	bank.EventsAttributes = []map[string]string{{"exception.message": "refused"}}
	drawn := draw(t, waterfall.New(trace.TraceID{15: 1}, true), waterfall.Options{Spans: 2}, all...)
	for _, want := range []string{
		"… and 2 spans more, of which 2 failed\n!  stock ", "\n     out of stock\n!  bank ",
		"\n     refused\n     bank = B\ufffd[2J\n     exception after 1ms\n" +
			"       exception.message = refused\n",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
	if strings.Contains(drawn, "ID's time") || strings.Contains(drawn, "~") {
		t.Errorf("64 bits have a time:\n%s", drawn)
	}
}
