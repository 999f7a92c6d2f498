package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

func TestIncomplete(t *testing.T) {
	at := time.UnixMilli(1_577_836_800_000 + 0x19<<33) // of an ID that begins with 0x19
	id := [16]byte{0x19, 15: 1}
	root := clickhouse.Span{TraceID: id, SpanID: "1", Start: at, Duration: time.Second}
	child := clickhouse.Span{TraceID: id, SpanID: "2", ParentSpanID: "1", Start: at.Add(time.Minute), Duration: time.Second}
	long := root
	long.Duration = time.Hour
	other := root
	other.TraceID[15] = 2
	overlay := clickhouse.Schema{Layout: clickhouse.Overlay}
	for name, c := range map[string]struct {
		found                []clickhouse.Span
		again, onOverlayOnly bool
	}{
		"whole":          {found: []clickhouse.Span{child, root}},
		"nothing":        {again: true},
		"another trace":  {found: []clickhouse.Span{other}, again: true},
		"no root":        {found: []clickhouse.Span{child}, again: true},
		"no parent":      {found: []clickhouse.Span{root, {TraceID: id, SpanID: "3", ParentSpanID: "2", Start: at}}, again: true},
		"ends later":     {found: []clickhouse.Span{long}, again: true, onOverlayOnly: true},
		"ends just then": {found: []clickhouse.Span{{TraceID: id, SpanID: "1", Start: at, Duration: time.Hour - 1}}},
	} {
		for _, s := range []clickhouse.Schema{overlay, {}} {
			want := []trace.TraceID{id}
			if !c.again || c.onOverlayOnly && s != overlay {
				want = nil
			}
			if got := clickhouse.Incomplete(s, []trace.TraceID{id, id}, c.found); !slices.Equal(got, want) {
				t.Errorf("%s, layout %d: look again for %x", name, s.Layout, got)
			}
		}
	}
	later := [16]byte{0x1a, 15: 1} // moves the end of the window of both
	if got := clickhouse.Incomplete(overlay, [][16]byte{id, later}, []clickhouse.Span{long}); !slices.Equal(got, [][16]byte{later}) {
		t.Errorf("with a later ID: %x", got)
	}
}
