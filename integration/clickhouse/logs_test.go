package clickhouse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// fillLogs stores records of three days until now: 20 to a trace, of 8 services,
// each up to a minute after its trace began.
func (e *engine) fillLogs(table string, records int) {
	e.t.Helper()
	e.exec(strings.ReplaceAll(read("testdata/logs.sql"), "{table}", table))
	e.exec(fmt.Sprintf(`INSERT INTO %s (Timestamp, TraceId, SpanId, SeverityText, SeverityNumber, ServiceName, Body)
SELECT began + toIntervalMillisecond(cityHash64(number) %% 60000) AS Timestamp,
    traceIDAt(began, intDiv(number, 20), cityHash64(intDiv(number, 20), 1)) AS TraceId,
    hex(cityHash64(number, 2)), 'INFO', 9, concat('service-', toString(number %% 8)), concat('handled request ', toString(cityHash64(number, 3)))
FROM (SELECT number, toDateTime64(now() - 3 * 86400, 3, 'UTC') + toIntervalMillisecond(intDiv(number, 20) * intDiv(3 * 86400000 * 20, %d)) AS began
    FROM numbers(%d))
SETTINGS max_partitions_per_insert_block = 0`, table, records, records))
}

func (e *engine) traceIDs(query string) (ids []trace.TraceID) {
	e.t.Helper()
	for _, text := range e.column(query) {
		ids = append(ids, parse(text))
	}
	return ids
}

// TestOverlayIndexes: the index on ranges of trace IDs makes a lookup by ID alone, and by an ID that does not
// exist, read less of the exporter's tables of spans and logs, and the records of traces are all found.
func TestOverlayIndexes(t *testing.T) {
	e := newEngine(t)
	overlay := clickhouse.Schema{Table: "spans", Layout: clickhouse.Overlay, LogsTable: "logs"}
	e.run(collectorTable("spans"), nil)
	e.run(clickhouse.Schema{Table: "other"}.Statements()) // for the functions
	e.fillLogs("logs", 200_000)
	e.exec(`INSERT INTO spans (Timestamp, TraceId, SpanId, ServiceName, SpanName)
SELECT toDateTime64(now(), 9) - toIntervalSecond(86400 - intDiv(number, 5)) AS Timestamp, traceIDAt(Timestamp, number, cityHash64(intDiv(number, 8))),
    hex(cityHash64(number)), concat('service-', toString(number % 3)), 'GET' FROM numbers(400000) SETTINGS max_partitions_per_insert_block = 0`)
	one := e.traceIDs("SELECT TraceId FROM logs ORDER BY TraceId LIMIT 1 OFFSET 150000")
	many := e.traceIDs("SELECT DISTINCT TraceId FROM logs WHERE Timestamp > now() - 3600 ORDER BY TraceId LIMIT 100")
	read := func() (bytes [2][2]uint64) {
		for i, table := range []string{"spans", "logs"} {
			e.exec("OPTIMIZE TABLE " + table + " FINAL") // what is read must not depend on merges meanwhile
			id := e.one("SELECT TraceId FROM " + table + " ORDER BY TraceId LIMIT 1 OFFSET 100000")
			for k, id := range []string{id, id[:31] + "x"} {
				bytes[i][k] = e.reads("SELECT * FROM " + table + " WHERE TraceId = '" + id + "'").Disk
			}
		}
		return bytes
	}
	before := read()
	build, err := overlay.MaterializeIndexes()
	for range 2 { // everything can be run again
		e.creates(overlay)
		if err := errors.Join(err, build.Run(t.Context(), e.db, nil)); err != nil {
			t.Fatal(err)
		}
	}
	full := e.rewriting("", func(query string) string {
		if strings.Contains(query, "FROM system.mutations") {
			return "SELECT '3', 'the disk is full'"
		}
		return query
	})
	if err := build.Run(t.Context(), full, nil); err == nil || !strings.Contains(err.Error(), "this was started, but fails: the disk is full") {
		t.Errorf("an index that cannot be built: %v", err)
	}
	after := read()
	for i, table := range []string{"spans", "logs"} {
		if after[i][0] > before[i][0] || after[i][1]*4 > before[i][1]*3 {
			t.Errorf("%s: bytes for an ID, and for one that does not exist: %v with the index, %v without", table, after[i], before[i])
		}
		if create := e.one("SHOW CREATE TABLE " + table); strings.Index(create, "idx_trace_id_range") > strings.Index(create, "INDEX idx_trace_id ") {
			t.Errorf("the index is not the first: %s", create)
		}
	}
	t.Logf("bytes for an ID, and for one that does not exist, of spans and logs: %v without the index, %v with it", before, after)
	for _, ids := range [][]trace.TraceID{one, many} {
		if got := e.find("SpanId")(clickhouse.Logs(overlay, ids)); len(got) != 20*len(ids) {
			t.Errorf("%d traces have %d records, want %d", len(ids), len(got), 20*len(ids))
		}
	}
}
