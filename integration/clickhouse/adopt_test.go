package clickhouse_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// few are spans of two days.
func few() []span {
	var few []span
	for i, s := range world()[:300] {
		s.start = noon.Add(time.Duration(i%2) * 24 * time.Hour).Add(time.Duration(i) * time.Second)
		few = append(few, s)
	}
	return few
}

func ids(spans []span) []string { return sorted(names(spans, func(span) bool { return true })) }

func (e *engine) column(query string) []string {
	e.t.Helper()
	var all []string
	for _, row := range e.exec(query) {
		all = append(all, row[0])
	}
	return all
}

// template is a table of the exporter with spans to copy.
func (e *engine) template(spans []span) {
	e.t.Helper()
	e.run(collectorTable("template")[:1], nil)
	e.insert("template", spans)
}

// exporterTable makes the exporter's table with the template's spans.
func (e *engine) exporterTable(table string) clickhouse.Schema {
	e.t.Helper()
	e.run(collectorTable(table), nil)
	e.exec("INSERT INTO " + table + " SELECT * FROM template")
	return clickhouse.Schema{Database: e.Database(), Table: table}
}

// holds compares the spans of a table with what must be there, each once.
func (e *engine) holds(table string, want []string) {
	e.t.Helper()
	if got := e.column("SELECT SpanId FROM " + table + " ORDER BY SpanId"); !reflect.DeepEqual(got, want) {
		e.t.Errorf("%s has %d spans, want %d", table, len(got), len(want))
	}
}

// snapshot is all that the database's tables are and how much they hold, and those of databases
// whose names begin with its own.
func (e *engine) snapshot() string {
	e.t.Helper()
	return fmt.Sprint(e.exec("SELECT database, name, uuid, create_table_query, total_rows FROM system.tables WHERE startsWith(database, currentDatabase()) ORDER BY ALL"))
}

// refuses checks that each of the calls fails with an error that contains want, and changes
// nothing, nor creates the functions.
func (e *engine) refuses(want string, calls ...func() error) {
	e.t.Helper()
	e.exec("DROP FUNCTION IF EXISTS traceIDSeq")
	before := e.snapshot()
	for _, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			e.t.Errorf("error %v, want %q", err, want)
		}
	}
	if after := e.snapshot(); after != before {
		e.t.Errorf("changed from %s to %s", before, after)
	}
	e.fails("SELECT traceIDSeq('')", "UNKNOWN_FUNCTION")
}

// createTable is the statement of a schema that creates its table.
func createTable(t *testing.T, s clickhouse.Schema) string {
	t.Helper()
	all, err := s.Statements()
	i := slices.IndexFunc(all, func(statement string) bool { return strings.HasPrefix(statement, "CREATE TABLE") })
	if err != nil || i < 0 {
		t.Fatalf("no table: %v", err)
	}
	return all[i]
}
