package clickhouse_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// agree compares the ways to see the spans of a table with what must be in it: by time, by the
// place of rows in parts, by trace, and through the view of trace times.
func (e *engine) agree(when string, s clickhouse.Schema, want []span) {
	e.t.Helper()
	from, to := noon.Add(-time.Hour), noon.Add(200*time.Hour)
	same := func(what string, got, want []string) {
		e.t.Helper()
		if !slices.Equal(sorted(got), sorted(want)) {
			e.t.Errorf("%s, %s: %d rows, want %d", when, what, len(got), len(want))
		}
	}
	same("time", e.find("SpanId")(s.Spans(from, to)), ids(want))
	same("place", e.column("WITH places AS (SELECT (_part, _part_offset) FROM "+s.Table+" WHERE ServiceName = 'service-2') SELECT "+listed+" FROM "+s.Table+
		" WHERE ServiceName = 'service-2' AND (_part, _part_offset) IN places"), list(slices.DeleteFunc(slices.Clone(want), func(s span) bool { return s.service != "service-2" })))
	traces := map[string]int{}
	var each [][16]byte
	for _, span := range want {
		if traces[span.trace]++; traces[span.trace] == 1 {
			each = append(each, parse(span.trace))
		}
	}
	same("lookup", e.column("SELECT TraceId FROM "+s.Table+"_trace_id_ts"), slices.Collect(maps.Keys(traces)))
	same("traces", e.find("SpanId")(clickhouse.TracesEverywhere(s, each)), ids(want))
	var ours []string
	for id, n := range traces {
		if at := traceid.Time(parse(id)); !at.Before(from) && at.Before(to) {
			ours = append(ours, fmt.Sprint(id, " ", n))
		}
	}
	same("newest", e.find("TraceId || ' ' || toString(Spans)")(s.Newest(from, to, trace.TraceID{}, 10_000)), ours)
}

// TestChangesShowAtOnce: what was deleted, changed or stored is so in the very next query.
func TestChangesShowAtOnce(t *testing.T) {
	for _, s := range []clickhouse.Schema{{Table: "service"}, {Table: "trace", Layout: clickhouse.TraceFirst}} {
		t.Run(s.Table, func(t *testing.T) {
			e := newEngine(t)
			e.run(s.Statements())
			spans := few()
			e.insert(s.Table, spans[:150])
			e.insert(s.Table, spans[150:])
			e.agree("as stored", s, spans)
			gone := spans[0].trace
			untouched := func() string {
				return e.one("SELECT sum(value) FROM system.events WHERE event = 'MutationUntouchedParts'")
			}
			before := untouched()
			e.exec("ALTER TABLE " + s.Table + " DELETE WHERE TraceId IN ['" + gone + "'] SETTINGS mutations_sync = 2") // as in docs/clickhouse.md
			if untouched() == before {
				t.Error("parts without such spans were rewritten")
			}
			spans = slices.DeleteFunc(spans, func(s span) bool { return s.trace == gone })
			e.agree("after ALTER DELETE", s, spans)
			e.exec("DELETE FROM " + s.Table + " WHERE ServiceName = 'service-1'")
			spans = slices.DeleteFunc(spans, func(s span) bool { return s.service == "service-1" })
			e.agree("after a lightweight DELETE", s, spans)
			late := spans[0]
			late.id, late.start, late.parent = 99, late.start.Add(150*time.Hour), late.id
			e.insert(s.Table, []span{late})
			spans = append(spans, late)
			e.agree("with a late span", s, spans)
			e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
			e.agree("merged", s, spans)
			e.exec("ALTER TABLE " + s.Table + " UPDATE Duration = 7, StatusCode = 'Error' WHERE ServiceName = 'service-2' SETTINGS mutations_sync = 1")
			for i := range spans {
				if spans[i].service == "service-2" {
					spans[i].duration, spans[i].failed = 7, true
				}
			}
			e.agree("after ALTER UPDATE", s, spans)
			e.exec("ALTER TABLE " + s.Table + " ADD COLUMN Tenant String DEFAULT ServiceName")
			e.exec("ALTER TABLE " + s.Table + " MATERIALIZE COLUMN Tenant SETTINGS mutations_sync = 1")
			e.exec("ALTER TABLE " + s.Table + " DROP COLUMN Tenant SETTINGS mutations_sync = 1")
			e.agree("after DROP COLUMN", s, spans)
			e.insert(s.Table, spans)
			e.exec("OPTIMIZE TABLE " + s.Table + " FINAL DEDUPLICATE")
			e.agree("after OPTIMIZE DEDUPLICATE", s, spans)
		})
	}
}
