package clickhouse_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// few are spans of two days.
func few() []span {
	few := slices.Clone(world()[:300])
	for i := range few {
		few[i].start = noon.Add(time.Duration(i%2) * 24 * time.Hour).Add(
			time.Duration(i) * time.Second)
	}
	return few
}

func (e *engine) column(query string) []string {
	e.t.Helper()
	var all []string
	for _, row := range e.exec(query) {
		all = append(all, row[0])
	}
	return all
}

// snapshot returns the definitions and sizes of all tables.
func (e *engine) snapshot() string {
	e.t.Helper()
	return fmt.Sprint(e.exec("SELECT database, name, uuid, create_table_query, total_rows FROM " +
		"system.tables WHERE lower(database) NOT IN ('system', 'information_schema') ORDER BY ALL"))
}

// createTable returns the statement of a schema that creates its table.
func createTable(s clickhouse.Schema) string {
	all, _ := s.Statements()
	return all[slices.IndexFunc(all,
		func(statement string) bool { return strings.HasPrefix(statement, "CREATE TABLE") })]
}

type (
	adoption  = clickhouse.Adoption
	operation = func(adoption, context.Context, *sql.DB) (clickhouse.Plan, error)
)

var operations = map[string]operation{
	"prepare": adoption.Prepare,
	"swap":    adoption.Swap,
	"undo":    adoption.Undo,
}

// ofSpans is the adoption of most tests.
var ofSpans = adoption{Table: "spans"}

// adopts runs an operation on the table spans, or "end".
func (e *engine) adopts(operation string, db *sql.DB) error {
	if operation == "end" {
		return e.ends("spans", db)
	}
	_, err := adopt(e.t.Context(), ofSpans, operation, db)
	return err
}

// walks runs operations, which must succeed, without their wait for inserts.
func (e *engine) walks(a adoption, operations ...string) {
	e.t.Helper()
	for _, operation := range operations {
		if _, err := adopt(e.t.Context(), a, operation, e.settled()); err != nil {
			e.t.Fatalf("%s: %v", operation, err)
		}
	}
}

// adopt plans an operation and runs it.
func adopt(
	ctx context.Context, a adoption, operation string, db *sql.DB,
) (clickhouse.Plan, error) {
	plan, err := operations[operation](a, ctx, db)
	if err == nil {
		err = plan.Run(ctx, db, nil)
	}
	return plan, err
}

// TestNoExchange: where tables cannot be exchanged, prepare says so before it changes anything, and
// the page adopts the table without.
func TestNoExchange(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.rollup()
	e.insert("spans", few()[:100])
	before := e.snapshot()
	_, err := adopt(t.Context(), ofSpans, "prepare", e.rewriting("", func(query string) string {
		return strings.Replace(query, "EXCHANGE TABLES `", "SELECT throwIf(1, 'renameat2') -- `", 1)
	}))
	if after := e.snapshot(); err == nil || after != before {
		t.Fatalf("%v; changed from %s to %s", err, before, after)
	}
	if !strings.Contains(err.Error(), "cannot exchange tables; the way without: https://") {
		t.Fatal(err)
	}
	plan, err := ofSpans.Prepare(t.Context(), e.db)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range plan.Steps[1:] {
		e.run(step.SQL, nil)
	}
	statements := recipe("### Without EXCHANGE", "spans")
	e.run(statements, nil)
	for _, statement := range statements[1:] {
		e.exec(strings.Replace(statement, "spans_trace_id_ts_mv", "rollup_mv", 1))
	}
	e.insert("spans", few()[100:])
	e.is("200", "SELECT count() FROM spans")
	for _, table := range []string{"spans_all", "rollup"} {
		e.is("300", "SELECT count() FROM "+table)
	}
}

// TestAdoptOnCluster: what is printed for a cluster parses, and every change has ON CLUSTER.
// Nothing of it was ever run on a cluster.
func TestAdoptOnCluster(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	const grants = "(SELECT currentDatabase() AS database, 'spans' AS table, NULL AS column, " +
		"'grafana' AS user_name, NULL AS role_name, 0 AS is_partial_revoke, " +
		"'SELECT' AS access_type)"
	db := e.rewriting("", func(query string) string {
		return oneServer(strings.Replace(query, "system.grants", grants, 2))
	})
	a, text := adoption{Table: "spans", Cluster: "two"}, ""
	for _, operation := range []string{"prepare", "swap", "undo"} {
		plan, err := operations[operation](a, t.Context(), db)
		if err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		for _, statement := range plan.SQL() {
			e.exec("EXPLAIN AST " + statement)
			local := strings.HasPrefix(statement, "INSERT") ||
				strings.HasPrefix(statement, "SELECT")
			if strings.Contains(statement, " ON CLUSTER `two`") == local {
				t.Errorf("on one server, or on all: %s", statement)
			}
		}
		text += plan.Script()
		if err := plan.Run(t.Context(), db, nil); err != nil { // on one server
			t.Fatalf("%s: %v", operation, err)
		}
		// a plan that another operator has run meanwhile
		if err := plan.Run(t.Context(), db, nil); operation != "prepare" &&
			!strings.Contains(fmt.Sprint(err), "the check before the next statement: the tables "+
				"are exchanged already") {
			t.Errorf("%s again: %v", operation, err)
		}
	}
	for _, want := range []string{
		"-- GRANT ON CLUSTER `two` SELECT ON `" + e.Database() + "`.`spans_all` TO `grafana`;",
		"run the INSERT on one server of each other shard, too",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
