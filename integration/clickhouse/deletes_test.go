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
