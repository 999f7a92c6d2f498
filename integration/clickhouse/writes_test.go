package clickhouse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// TestChangesShowAtOnce: deletions, changes and inserts show in the very next query, also in one
// that reads a projection. A table with a projection refuses DELETE FROM, which would leave deleted
// spans in the projection.
func TestChangesShowAtOnce(t *testing.T) {
	for _, projection := range []clickhouse.Projection{clickhouse.NoProjection, clickhouse.Charts,
		clickhouse.AllColumns} {
		t.Run(string(projection), func(t *testing.T) {
			testChanges(t, clickhouse.Schema{Table: "spans", Projection: projection})
		})
	}
}

func testChanges(t *testing.T, s clickhouse.Schema) {
	e := newEngine(t)
	e.run(s.Statements())
	spans := few()
	late := spans[1]
	late.id, late.start, late.parent = 99, late.start.Add(150*time.Hour), hex(late.id)
	gone, keep := spans[0].trace, func(*span) bool { return true }
	spans = append(spans, late)
	e.insert(s.Table, spans[:150])
	e.insert(s.Table, spans[150:])
	untouched := func() string {
		return e.one(
			"SELECT sum(value) FROM system.events WHERE event = 'MutationUntouchedParts'")
	}
	for _, c := range []struct {
		statement string
		change    func(*span) (kept bool)
	}{
		{"SELECT 1", keep},
		// as in docs/clickhouse.md
		{"ALTER TABLE spans DELETE WHERE TraceId IN ['" + gone +
			"'] SETTINGS mutations_sync = 2;" +
			"ALTER TABLE spans_trace_id_ts DELETE WHERE TraceId IN ['" + gone +
			"'] SETTINGS mutations_sync = 2",
			func(s *span) bool { return s.trace != gone }},
		{"DELETE FROM spans WHERE ServiceName = 'service-1'",
			func(s *span) bool { return s.service != "service-1" }},
		{"OPTIMIZE TABLE spans FINAL", keep},
		{"ALTER TABLE spans UPDATE Duration = 7, StatusCode = 'Error' WHERE ServiceName " +
			"= 'service-2' SETTINGS mutations_sync = 1", func(s *span) bool {
			if s.service == "service-2" {
				s.duration, s.status = 7, "Error"
			}
			return true
		}},
	} {
		if s.Projection != clickhouse.NoProjection && strings.HasPrefix(c.statement, "DELETE") {
			e.fails(c.statement, "SUPPORT_IS_DISABLED")
			continue
		}
		before := untouched()
		e.run(strings.Split(c.statement, ";"), nil)
		if strings.Contains(c.statement, gone) {
			if untouched() == before {
				t.Error("parts without such spans were rewritten")
			}
			e.is("0", "SELECT count() FROM spans_trace_id_ts WHERE TraceId = '"+gone+"'")
		}
		var left []span
		var traces [][16]byte
		for _, s := range spans {
			if c.change(&s) {
				left = append(left, s)
				traces = append(traces, parse(s.trace))
			}
		}
		spans = left
		if got := e.column("SELECT " + listed + " FROM spans"); !slices.Equal(sorted(got),
			sorted(list(spans))) {
			t.Errorf("%s: %d spans, want %d, or others", c.statement, len(got), len(spans))
		}
		if got := e.find("SpanId")(clickhouse.Traces(s, traces)); !slices.Equal(sorted(got),
			ids(spans)) {
			t.Errorf("%s: %d spans of the traces, want %d", c.statement, len(got), len(spans))
		}
		const services = "SELECT ServiceName, SpanName, count(), sum(Duration), max(Timestamp) " +
			"FROM spans WHERE ServiceName >= 'service' GROUP BY ALL ORDER BY ALL"
		if with, without := e.exec(services), e.exec(services+
			" SETTINGS optimize_use_projections = 0"); !slices.EqualFunc(with, without,
			slices.Equal) {
			t.Errorf("%s: with the projection %v, without it %v", c.statement, with, without)
		}
	}
}

// TestOddDates stores spans of clocks that are wrong by days or by centuries, with ordered and
// random IDs: each trace, of all these times or of one, is found whole, by our query and by its ID
// alone, with the lookup table that the view filled and with the one that create fills.
func TestOddDates(t *testing.T) {
	e := newEngine(t)
	dates := []time.Time{noon, noon.Add(-72 * time.Hour), noon.Add(72 * time.Hour)}
	for _, year := range []int{1931, 1969, 1970, 2106, 2107, 2150, 2261, 2299} {
		dates = append(dates, time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC),
			time.Date(year, 12, 31, 22, 59, 59, 0, time.UTC))
	}
	ids := random(20 + len(dates))
	traces := ids[len(dates):]
	traces = append(traces, traceid.Min(noon), traceid.Min(noon.Add(-time.Hour)))
	for _, s := range []clickhouse.Schema{{Table: "oldest"}, {Table: "newest", Version: "26.8"}} {
		e.run(s.Statements())
		for i, date := range dates {
			spans := []span{{trace: ids[i].String(), start: date}}
			for k, id := range traces {
				spans = append(spans, span{trace: id.String(), id: uint64(1 + k), service: "a",
					start: date.Add(time.Duration(k) * time.Minute)})
			}
			e.insert(s.Table, spans)
		}
		e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
		for _, filled := range []string{"by the view", "by create"} {
			e.is(fmt.Sprint(len(dates)*(len(traces)+1)), "SELECT count() FROM "+s.Table)
			for _, row := range e.exec("SELECT TraceId, count(), min(Timestamp) FROM " + s.Table +
				" GROUP BY TraceId ORDER BY TraceId") {
				id, want := row[0], row[1]
				found := e.find("SpanId")(s.Trace(parse(id)))
				alone := e.column("SELECT SpanId FROM " + s.Table + " WHERE TraceId = '" + id + "'")
				if fmt.Sprint(len(found)) != want || fmt.Sprint(len(alone)) != want {
					t.Errorf("%s, filled %s: %d and %d spans of a trace from %s, want %s", s.Table,
						filled, len(found), len(alone), row[2], want)
				}
			}
			e.exec("DROP TABLE " + s.Table + "_trace_id_ts")
			e.creates(s)
		}
	}
}
