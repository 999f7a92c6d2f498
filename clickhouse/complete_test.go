package clickhouse_test

import (
	"slices"
	"testing"
	"time"

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
		found []clickhouse.Span
		again bool
	}{
		"whole":          {[]clickhouse.Span{child, root}, false},
		"nothing":        {nil, true},
		"another trace":  {[]clickhouse.Span{other}, true},
		"no root":        {[]clickhouse.Span{child}, true},
		"no parent":      {[]clickhouse.Span{root, {TraceID: id, SpanID: "3", ParentSpanID: "2", Start: at}}, true},
		"ends later":     {[]clickhouse.Span{long}, true},
		"ends just then": {[]clickhouse.Span{{TraceID: id, SpanID: "1", Start: at, Duration: time.Hour - 1}}, false},
	} {
		got := overlay.Incomplete([][16]byte{id, id}, c.found)
		if want := [][16]byte{id}; c.again && !slices.Equal(got, want) || !c.again && got != nil {
			t.Errorf("%s: look again for %x", name, got)
		}
		if got := (clickhouse.Schema{}).Incomplete([][16]byte{id}, c.found); got != nil {
			t.Errorf("%s: Owned has no window, but look again for %x", name, got)
		}
	}
	later := [16]byte{0x1a, 15: 1} // moves the end of the window of both
	if got := overlay.Incomplete([][16]byte{id, later}, []clickhouse.Span{long}); !slices.Equal(got, [][16]byte{later}) {
		t.Errorf("with a later ID: %x", got)
	}
}
