package clickhouse_test

import (
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

func (e *engine) traceIDs(query string) (ids []trace.TraceID) {
	e.t.Helper()
	for _, text := range e.column(query) {
		ids = append(ids, parse(text))
	}
	return ids
}

// TestOverlayIndexes: the index on ranges of trace IDs makes a lookup by ID alone, and by an ID that does not
// exist, read less of the exporter's table of logs, and the records of traces are all found.
func TestOverlayIndexes(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Table: "spans", LogsTable: "logs"}
	e.run(clickhouse.Schema{Table: "spans"}.Statements())
	// Records of three days until now: 20 to a trace, of 8 services, each up to a minute after its trace began.
	e.exec(strings.ReplaceAll(read("testdata/logs.sql"), "{table}", "logs"))
	e.exec(`INSERT INTO logs (Timestamp, TraceId, SpanId, SeverityText, SeverityNumber, ServiceName, Body)
SELECT began + toIntervalMillisecond(cityHash64(number) % 60000) AS Timestamp,
    traceIDAt(began, intDiv(number, 20), cityHash64(intDiv(number, 20), 1)) AS TraceId,
    hex(cityHash64(number, 2)), 'INFO', 9, concat('service-', toString(number % 8)), concat('handled request ', toString(cityHash64(number, 3)))
FROM (SELECT number, toDateTime64(now() - 3 * 86400, 3, 'UTC') + toIntervalMillisecond(intDiv(number, 20) * 25920) AS began FROM numbers(200000))
SETTINGS max_partitions_per_insert_block = 0`)
	id := e.one("SELECT TraceId FROM logs ORDER BY TraceId LIMIT 1 OFFSET 100000")
	read := func() (bytes [2]uint64) {
		e.exec("OPTIMIZE TABLE logs FINAL") // what is read must not depend on merges meanwhile
		for k, id := range []string{id, id[:31] + "x"} {
			bytes[k] = e.reads("SELECT * FROM logs WHERE TraceId = '" + id + "'").Disk
		}
		return bytes
	}
	before := read()
	build, err := s.MaterializeIndexes()
	for range 2 { // everything can be run again
		e.creates(s)
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
	if after := read(); after[0] > before[0] || after[1]*4 > before[1]*3 {
		t.Errorf("bytes for an ID, and for one that does not exist: %v with the index, %v without", after, before)
	}
	if create := e.one("SHOW CREATE TABLE logs"); strings.Index(create, "idx_trace_id_range") > strings.Index(create, "INDEX idx_trace_id ") {
		t.Errorf("the index is not the first: %s", create)
	}
	many := e.traceIDs("SELECT DISTINCT TraceId FROM logs WHERE Timestamp > now() - 3600 ORDER BY TraceId LIMIT 100")
	for _, ids := range [][]trace.TraceID{{parse(id)}, many} {
		if got := e.find("SpanId")(clickhouse.Logs(s, ids)); len(got) != 20*len(ids) {
			t.Errorf("%d traces have %d records, want %d", len(ids), len(got), 20*len(ids))
		}
	}
}
