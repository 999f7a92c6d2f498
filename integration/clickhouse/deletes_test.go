package clickhouse_test

import (
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

// TestDeletesLeaveProjection: why docs/clickhouse.md says to leave the setting
// lightweight_mutation_projection_mode as it is. If this fails with a newer ClickHouse, change the
// page.
func TestDeletesLeaveProjection(t *testing.T) {
	e := newEngine(t)
	if version := e.one("SELECT version()"); !strings.HasPrefix(version, "26.7.") {
		t.Skip("the page is about ClickHouse 26.7, and this is", version)
	}
	s := clickhouse.Schema{Table: "spans", Projection: clickhouse.Charts}
	e.run(s.Statements())
	e.insert("spans", few())
	count := func(want string) {
		t.Helper()
		e.is(want, "SELECT count() FROM spans WHERE ServiceName = 'service-1' "+
			"SETTINGS force_optimize_projection = 1")
	}
	deleted := e.one("SELECT countIf(ServiceName = 'service-1') FROM spans")
	e.exec("ALTER TABLE spans MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild'")
	e.exec("DELETE FROM spans WHERE ServiceName = 'service-1'")
	e.is("0", "SELECT count() FROM spans WHERE ServiceName = 'service-1' "+
		"SETTINGS optimize_use_projections = 0")
	count(deleted)
	e.exec("OPTIMIZE TABLE spans FINAL")
	count("0")

	const projections = "SELECT count() FROM system.projection_parts WHERE active AND " +
		"database = currentDatabase()"
	e.exec("ALTER TABLE spans MODIFY SETTING lightweight_mutation_projection_mode = 'drop'")
	e.exec("DELETE FROM spans WHERE ServiceName = 'service-2'")
	e.is("0", projections)
}

// TestTimesOfSessions: why docs/clickhouse.md says to give times with their zone, and within 1970
// to 2106: on the exporter's table and on ours, other conditions lose spans.
func TestTimesOfSessions(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("exporter"), nil)
	e.exec("ALTER TABLE exporter REMOVE TTL")
	e.creates(clickhouse.Schema{Table: "ours"})
	for _, table := range []string{"exporter", "ours"} {
		e.exec("INSERT INTO " + table + " (Timestamp) SELECT toDateTime64('2026-10-14 00:00:00', " +
			"9, 'UTC') + number * 30 FROM numbers(10000)")
		e.exec("INSERT INTO " + table + " (Timestamp) VALUES ('1969-12-31 23:00:00')")
		for where, want := range map[string]string{
			"Timestamp >= T('2026-10-15 00:00:00', 9, 'UTC') AND Timestamp < " +
				"T('2026-10-15 01:00:00', 9, 'UTC')": "120",
			// of 120
			"Timestamp >= '2026-10-15 00:00:00' AND Timestamp < '2026-10-15 01:00:00'": "0",
			"Timestamp BETWEEN T('1950-01-01 00:00:00', 9, 'UTC') AND " +
				"T('2026-10-14 00:00:00', 9, 'UTC')": "1", // of 2
		} {
			e.is(want, "SELECT count() FROM "+table+" WHERE "+strings.ReplaceAll(where, "T(",
				"toDateTime64(")+" SETTINGS session_timezone = 'Asia/Tokyo'")
		}
	}
}
