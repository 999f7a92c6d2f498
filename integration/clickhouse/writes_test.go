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
// that reads a projection, as in a table without any index. A table with a projection refuses
// DELETE FROM, which would leave deleted spans in the projection.
func TestChangesShowAtOnce(t *testing.T) {
	for _, projection := range []clickhouse.Projection{clickhouse.NoProjection, clickhouse.Charts,
		clickhouse.AllColumns} {
		t.Run(string(projection), func(t *testing.T) {
			s := clickhouse.Schema{Table: "spans", Projection: projection}
			e := newEngine(t)
			e.run(s.Statements())
			spans := few()
			e.insert("spans", spans[:150])
			e.insert("spans", spans[150:])
			e.exec("INSERT INTO spans (Timestamp, TraceId) SELECT Timestamp + INTERVAL 150 HOUR, " +
				"TraceId FROM spans LIMIT 1")
			e.exec("CREATE TABLE plain ENGINE = Memory AS SELECT * FROM spans")
			gone := spans[0].trace
			for _, change := range []string{"SELECT 1", // as in docs/clickhouse.md
				"ALTER TABLE {table} DELETE WHERE TraceId IN ['" + gone + "']",
				"DELETE FROM {table} WHERE ServiceName = 'service-1'",
				"OPTIMIZE TABLE spans FINAL",
				"ALTER TABLE {table} UPDATE Duration = 7, StatusCode = 'Error' WHERE ServiceName " +
					"= 'service-2'"} {
				if strings.HasPrefix(change, "DELETE") && projection != clickhouse.NoProjection {
					e.fails(strings.Replace(change, "{table}", "spans", 1), "SUPPORT_IS_DISABLED")
					continue
				}
				for _, table := range []string{"spans", "plain"} {
					statement := strings.Replace(change, "{table}", table, 1)
					if table == "plain" {
						statement = strings.Replace(statement, "DELETE FROM plain",
							"ALTER TABLE plain DELETE", 1)
					}
					if strings.HasPrefix(statement, "ALTER") {
						statement += " SETTINGS mutations_sync = 2"
					}
					e.exec(statement)
				}
				traces, err := clickhouse.Traces(s,
					e.traceIDs("SELECT DISTINCT TraceId FROM plain"))
				if got, want := e.find("tuple(TraceId, SpanId)")(traces, err), e.column(
					"SELECT tuple(TraceId, SpanId) FROM plain"); !slices.Equal(sorted(got),
					sorted(want)) {
					t.Errorf("%s: %d spans of the traces, want %d", change, len(got), len(want))
				}
				for _, query := range []string{"SELECT count(), sum(cityHash64(*)) FROM {table}",
					"SELECT ServiceName, SpanName, count(), sum(Duration), max(Timestamp) FROM " +
						"{table} WHERE ServiceName >= 'service' GROUP BY ALL ORDER BY ALL"} {
					ours := e.exec(strings.Replace(query, "{table}", "spans", 1))
					plain := e.exec(strings.Replace(query, "{table}", "plain", 1))
					if !slices.EqualFunc(ours, plain, slices.Equal) {
						t.Errorf("after %s, %s: %v, want %v", change, query, ours, plain)
					}
				}
			}
			e.is("1", "SELECT sum(value) > 0 FROM system.events WHERE event = "+
				"'MutationUntouchedParts'") // parts without such spans are not rewritten
		})
	}
}

// TestOddDates stores spans of clocks that are wrong by days or by centuries, with ordered and
// random IDs: each trace, of all these times or of one, is found whole, by our query and by its ID
// alone, and create fills the lookup table.
func TestOddDates(t *testing.T) {
	e := newEngine(t)
	dates := []time.Time{noon, noon.Add(-72 * time.Hour), noon.Add(72 * time.Hour)}
	for _, year := range []int{1931, 1969, 1970, 2106, 2107, 2150, 2261, 2299} {
		dates = append(dates, time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC),
			time.Date(year, 12, 31, 22, 59, 59, 0, time.UTC))
	}
	traces := append(random(20+len(dates)), traceid.Min(noon), traceid.Min(noon.Add(-time.Hour)))
	var want, alone []string
	for i, id := range traces {
		n := 1 // of one date
		if i >= len(dates) {
			n = len(dates)
		}
		want = append(want, fmt.Sprint(n))
		alone = append(alone, "(SELECT count() FROM {table} WHERE TraceId = '"+id.String()+"')")
	}
	for _, s := range []clickhouse.Schema{{Table: "oldest"}, {Table: "newest", Version: "26.8"}} {
		e.run(s.Statements())
		for i, date := range dates {
			spans := []span{{trace: traces[i].String(), start: date}}
			for k, id := range traces[len(dates):] {
				spans = append(spans, span{trace: id.String(), id: uint64(1 + k), service: "a",
					start: date.Add(time.Duration(k) * time.Minute)})
			}
			e.insert(s.Table, spans)
		}
		e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
		found := e.exec("SELECT " + strings.ReplaceAll(strings.Join(alone, ", "), "{table}",
			s.Table))[0]
		if !slices.Equal(found, want) {
			t.Errorf("%s: %s spans are found by their traces' IDs alone, want %s", s.Table, found,
				want)
		}
		all := e.column("SELECT TraceId FROM " + s.Table)
		if got := e.find("TraceId")(clickhouse.Traces(s, traces)); len(all) < 400 ||
			!slices.Equal(sorted(got), sorted(all)) {
			t.Errorf("%s: %d spans are found, want %d", s.Table, len(got), len(all))
		}
		e.exec("DROP TABLE " + s.Table + "_trace_id_ts")
		e.creates(s)
		e.is("0", "SELECT countIf(TraceId NOT IN (SELECT TraceId FROM "+s.Table+"_trace_id_ts)) "+
			"FROM "+s.Table)
	}
}
