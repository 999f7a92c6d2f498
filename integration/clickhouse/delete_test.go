package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
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
		if err := s.Create(t.Context(), e.db); err != nil {
			t.Fatal(err)
		}
		e.exec("SYSTEM STOP MERGES spans")
		const days, each = 4, 50 // in two parts a day
		var traces []trace.TraceID
		for day := range days {
			for part := range 2 {
				var spans []span
				for i := range each {
					at := noon.Add(time.Duration(day*24)*time.Hour + time.Duration(part*each+i)*time.Second)
					id := fmt.Sprintf("%016x%016x", uint64(at.UnixMilli()-1577836800000)<<23, uint64(i+1))
					spans = append(spans, span{trace: id, id: uint64(day*1000 + part*each + i + 1), service: "a", name: "b", start: at})
				}
				// A trace that goes on for days: its spans are not where its ID's time is.
				if part == 1 {
					spans = append(spans, span{trace: "18000000000000000000000000000001", id: uint64(900_000 + day), service: "a", name: "long", start: noon.Add(time.Duration(day*24) * time.Hour)})
				}
				e.insert("spans", spans)
				if day == 2 && part == 0 {
					for _, s := range spans[:12] {
						id, _ := trace.TraceIDFromHex(s.trace)
						traces = append(traces, id)
					}
				}
			}
		}
		untouched := func() string {
			return e.one("SELECT sum(value) FROM system.events WHERE event = 'MutationUntouchedParts'")
		}
		d, err := clickhouse.DeleteTraces(s, traces)
		in := e.partitions(d, err)
		if len(in) != 1 {
			t.Fatalf("12 traces of one day are in partitions %v", in)
		}
		before := untouched()
		e.exec("SYSTEM START MERGES spans") // mutations too
		e.run(d.Statements(in), nil)
		if left := e.one("SELECT count() FROM spans"); left != fmt.Sprint(days*(2*each+1)-12) {
			t.Errorf("layout %d: %s spans left", layout, left)
		}
		if after := untouched(); after == before {
			t.Errorf("layout %d: the part without such spans was rewritten", layout)
		}
		long, _ := trace.TraceIDFromHex("18000000000000000000000000000001")
		d, err = clickhouse.DeleteTraces(s, []trace.TraceID{long})
		if in = e.partitions(d, err); len(in) != days {
			t.Errorf("layout %d: the long trace is in partitions %v", layout, in)
		}
		e.run(d.Statements(in), nil)
		if left := e.one("SELECT count() FROM spans WHERE SpanName = 'long'"); left != "0" {
			t.Errorf("layout %d: %s spans of the long trace left", layout, left)
		}
		d, err = s.DeleteSpans(noon.Add(-time.Hour), noon.Add(24*time.Hour+10*time.Second))
		if in = e.partitions(d, err); len(in) != 2 {
			t.Errorf("layout %d: partitions of a day and ten seconds: %v", layout, in)
		}
		e.run(d.Statements(in), nil)
		if left := e.one("SELECT count() FROM spans"); left != fmt.Sprint(days*2*each-12-2*each-10) {
			t.Errorf("layout %d: %s spans left at the end", layout, left)
		}
	}
}
