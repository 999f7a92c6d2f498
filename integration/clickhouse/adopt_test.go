package clickhouse_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
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

// refuses checks that a call fails with an error that contains want, and changes nothing, nor
// creates the functions.
func (e *engine) refuses(want string, call func() error) {
	e.t.Helper()
	e.exec("DROP FUNCTION IF EXISTS traceIDSeq")
	before := e.snapshot()
	if err := call(); err == nil || !strings.Contains(err.Error(), want) {
		e.t.Errorf("error %v, want %q", err, want)
	}
	if after := e.snapshot(); after != before {
		e.t.Errorf("changed from %s to %s", before, after)
	}
	e.fails("SELECT traceIDSeq('')", "UNKNOWN_FUNCTION")
}

// createTable returns the statement of a schema that creates its table.
func createTable(s clickhouse.Schema) string {
	all, _ := s.Statements()
	return all[slices.IndexFunc(all,
		func(statement string) bool { return strings.HasPrefix(statement, "CREATE TABLE") })]
}

// moves is a TTL that does more than drop spans.
const moves = "toDateTime(Timestamp) + toIntervalDay(1) TO VOLUME 'cold', toDateTime(Timestamp) " +
	"+ toIntervalDay(3650)"

// columnTTL is the TTL of one of the exporter's columns.
const columnTTL = "toDateTime(Timestamp) + toIntervalDay(3600)"

// adoptable creates the exporter's table with the columns and indexes of a shape and everything
// that an adoption carries over, the lookup table, and materialized views of users on both. It
// returns the shape's indexes.
func (e *engine) adoptable(shape string) (indexes string) {
	e.t.Helper()
	columns, _, _ := strings.Cut(collectorTable("spans")[0], ",\n    INDEX")
	more := strings.Split(comments.ReplaceAllString(read("testdata/shapes/"+shape), ""), ";\n")
	e.exec(columns + more[0] + ", " + more[1] + `,
		CONSTRAINT named CHECK SpanName != 'a, (b',
		PROJECTION counts (SELECT ServiceName, count() GROUP BY ServiceName))
		ENGINE = MergeTree ` + more[2] + `
		TTL ` + moves + `
		SETTINGS ttl_only_drop_parts = 0, storage_policy = 'tiered', merge_with_ttl_timeout = 7,
			index_granularity = 8192, index_granularity_bytes = 5000000
		COMMENT 'ours, (not TTL x'`)
	e.exec("ALTER TABLE spans MODIFY COLUMN StatusMessage TTL " + columnTTL)
	e.exec("ALTER TABLE spans COMMENT COLUMN StatusMessage 'it''s, (TTL x', COMMENT COLUMN " +
		"`Events.Name` 'y'")
	e.run(collectorTable("spans")[1:], nil)
	e.exec("CREATE TABLE rollup (SpanId String) ENGINE = MergeTree ORDER BY SpanId")
	e.exec("CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT SpanId FROM spans")
	e.exec("CREATE TABLE traces (TraceId String) ENGINE = ReplacingMergeTree ORDER BY TraceId")
	e.exec("CREATE MATERIALIZED VIEW traces_mv TO traces AS SELECT TraceId FROM spans_trace_id_ts")
	return more[1]
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

// cannot checks that an operation on the table spans is refused.
func (e *engine) cannot(operation, want string) {
	e.t.Helper()
	if err := e.adopts(operation, e.db); err == nil || !strings.Contains(err.Error(), want) {
		e.t.Errorf("%s: %v, want %q", operation, err, want)
	}
}

// TestAdopt adopts tables of several shapes to the end: the tables of a canceled adoption are what
// they were, materialized views follow the name, and the new table has everything that the old one
// had, as a table of Create.
func TestAdopt(t *testing.T) {
	for _, shape := range []string{"clickstack.sql", "exporter.sql"} {
		t.Run(shape, func(t *testing.T) {
			e := newEngine(t)
			indexes := e.adoptable(shape)
			const columnsOf = "SELECT name || ' ' || type || ' ' || default_kind || ' ' || " +
				"default_expression || comment FROM system.columns WHERE database = " +
				"currentDatabase() AND table = 'spans' ORDER BY position"
			columns, before := e.column(columnsOf), e.snapshot()
			e.walks(ofSpans, "prepare", "prepare")
			if err := e.adopts("end", e.db); err != nil || e.snapshot() != before {
				t.Errorf("prepare and cancel turned %s into %s: %v", before, e.snapshot(), err)
			}
			e.insert("spans", few()[:100])
			e.walks(ofSpans, "prepare", "swap", "swap")
			e.insert("spans", few()[100:])
			e.followed("spans_all")
			e.cannot("end", "it has spans")
			e.exec("RENAME TABLE spans_dropped TO spans_other")
			e.walks(ofSpans, "prepare")
			e.exec("TRUNCATE TABLE spans_other") // as its TTL does
			if err := e.adopts("end", e.db); err != nil {
				t.Error(err)
			}
			if after := e.column(columnsOf); !slices.Equal(after, columns) {
				t.Errorf("columns %q, want %q", after, columns)
			}
			create := e.one("SELECT create_table_query FROM system.tables WHERE database = " +
				"currentDatabase() AND name = 'spans'")
			for _, part := range append(regexp.MustCompile(`INDEX \w+ `).FindAllString(indexes, -1),
				"INDEX idx_timestamp ", "PROJECTION charts (",
				"CONSTRAINT named CHECK SpanName != 'a, (b'", "PROJECTION counts (",
				"ttl_only_drop_parts", "ttl_only_drop_parts = 0", "merge_with_ttl_timeout = 7",
				"storage_policy = 'tiered'", moves+" SETTINGS", "TTL "+columnTTL+",",
				"COMMENT 'ours, (not TTL x'") {
				if strings.Count(create, part) != 1 {
					t.Errorf("the new table has not %s: %s", part, create)
				}
			}
			if strings.Contains(create, "index_granularity_bytes") {
				t.Errorf("the new table has the old one's granules: %s", create)
			}
			e.creates(clickhouse.Schema{Table: "spans"})
		})
	}
}

// followed checks that few spans are in a table once, and in what materialized views fill.
func (e *engine) followed(table string) {
	e.t.Helper()
	for _, name := range []string{table, "rollup"} {
		if got := e.column("SELECT SpanId FROM " + name + " ORDER BY SpanId"); !slices.Equal(got,
			sorted(ids(few()))) {
			e.t.Errorf("%s has %d spans, or others", name, len(got))
		}
	}
	e.is("0", "SELECT count() FROM "+table+" WHERE TraceId NOT IN traces OR TraceId NOT IN "+
		"(SELECT TraceId FROM "+table+"_trace_id_ts)")
}

// isNew is 1 if the table spans is the new one.
func (e *engine) isNew() string {
	return e.one("SELECT toString(sorting_key LIKE 'toStartOfFiveMinutes%') FROM system.tables " +
		"WHERE database = currentDatabase() AND name = 'spans'")
}

// TestNoExchange: where tables cannot be exchanged, prepare says so before it changes anything, and
// the page adopts the table without.
func TestNoExchange(t *testing.T) {
	e := newEngine(t)
	e.adoptable("exporter.sql")
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
	e.is("1", e.isNew())
	e.insert("spans", few()[100:])
	e.followed("spans_all")
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
