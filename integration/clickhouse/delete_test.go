package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// partitions runs the query of a deletion.
func (e *engine) partitions(d clickhouse.Deletion, err error) []string {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
	return e.find("PartitionID")(d.Partitions, nil)
}

// TestDelete deletes traces, and a range of time: what is left is right, and only parts that had
// such spans are rewritten.
func TestDelete(t *testing.T) {
	for _, layout := range []clickhouse.Layout{clickhouse.ServiceFirst, clickhouse.TraceFirst, clickhouse.Overlay} {
		e := newEngine(t)
		s := clickhouse.Schema{Table: "spans", Layout: layout}
		if layout == clickhouse.Overlay {
			e.run(collectorTable("spans")[:1], nil)
		}
		e.creates(s)
		e.exec("SYSTEM STOP MERGES spans")
		const days, each = 3, 50           // in two parts a day
		long := trace.TraceID{0x18, 15: 1} // goes on for days: its spans are not where its ID's time is
		var traces []trace.TraceID
		for part := range 2 * days {
			day := noon.Add(time.Duration(part/2*24) * time.Hour)
			var spans []span
			if part%2 == 1 {
				spans = append(spans, span{trace: long.String(), id: uint64(900_000 + part), service: "a", name: "long", start: day})
			}
			for i := range each {
				at := day.Add(time.Duration(part%2*each+i) * time.Second)
				traces = append(traces, traceid.Min(at))
				spans = append(spans, span{trace: traceid.Min(at).String(), id: uint64(part*1000 + i + 1), service: "a", name: "b", start: at})
			}
			e.insert("spans", spans)
		}
		untouched := func() string {
			return e.one("SELECT sum(value) FROM system.events WHERE event = 'MutationUntouchedParts'")
		}
		d, err := clickhouse.DeleteTraces(s, traces[4*each:4*each+12])
		in := e.partitions(d, err)
		if len(in) != 1 {
			t.Fatalf("12 traces of one day are in partitions %v", in)
		}
		before := untouched()
		e.exec("SYSTEM START MERGES spans") // mutations too
		e.run(d.Statements(in), nil)
		e.is(fmt.Sprint(days*(2*each+1)-12), "SELECT count() FROM spans")
		if after := untouched(); after == before {
			t.Errorf("layout %d: the part without such spans was rewritten", layout)
		}
		d, err = clickhouse.DeleteTraces(s, []trace.TraceID{long})
		if in = e.partitions(d, err); len(in) != days {
			t.Errorf("layout %d: the long trace is in partitions %v", layout, in)
		}
		e.run(d.Statements(in), nil)
		e.is("0", "SELECT count() FROM spans WHERE SpanName = 'long'")
		d, err = s.DeleteSpans(noon.Add(-time.Hour), noon.Add(24*time.Hour+10*time.Second))
		if in = e.partitions(d, err); len(in) != 2 {
			t.Errorf("layout %d: partitions of a day and ten seconds: %v", layout, in)
		}
		e.run(d.Statements(in), nil)
		e.is(fmt.Sprint(days*2*each-12-2*each-10), "SELECT count() FROM spans")
	}
}
