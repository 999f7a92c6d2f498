package clickhouse_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
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

// snapshot returns the definitions and sizes of the database's tables, and of those of databases
// whose names begin with its own.
func (e *engine) snapshot() string {
	e.t.Helper()
	return fmt.Sprint(e.exec("SELECT database, name, uuid, create_table_query, total_rows FROM " +
		"system.tables WHERE startsWith(database, currentDatabase()) ORDER BY ALL"))
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
	"cancel":  adoption.Cancel,
	"copy": func(a adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
		return a.Copy(ctx, db, time.Time{})
	},
	"finish": func(a adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
		return a.Finish(ctx, db, false)
	},
	"drop-history": func(a adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
		return a.Finish(ctx, db, true)
	},
}

// ofSpans is the adoption of most tests.
var ofSpans = adoption{Table: "spans"}

// adopts runs an operation on the table spans.
func (e *engine) adopts(operation string) (clickhouse.Plan, error) {
	return adopt(e.t.Context(), ofSpans, operation, e.db)
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

// must runs an operation that must succeed. Running it again must change nothing but the functions
// and the lookup table.
func (e *engine) must(operation string) clickhouse.Plan {
	e.t.Helper()
	plan, err := e.adopts(operation)
	if err != nil {
		e.t.Fatalf("%s: %v", operation, err)
	}
	definitions := func() string {
		return fmt.Sprint(e.exec("SELECT name, uuid, create_table_query FROM system.tables WHERE " +
			"database = currentDatabase() ORDER BY name"))
	}
	before := definitions()
	if _, err := e.adopts(operation); err != nil || definitions() != before {
		e.t.Fatalf("%s again: %v; from %s to %s", operation, err, before, definitions())
	}
	status, err := ofSpans.Status(e.t.Context(), e.db)
	halfway := status.Phase == clickhouse.Preparing || status.Phase == clickhouse.Finishing
	if err != nil || status.Problem != nil || halfway || status.Fill != "" {
		e.t.Fatalf("after %s the adoption is %s (%v): %+v", operation, status.Phase, err, status)
	}
	return plan
}

// stored checks that each span is in one of the two tables, and checks the views.
func (e *engine) stored(when string, want []string) {
	e.t.Helper()
	want = sorted(want)
	of := func(what, query string, want []string) {
		e.t.Helper()
		if got := e.column(query); !slices.Equal(got, want) {
			e.t.Fatalf("%s: %s has %d rows, want %d, or others", when, what, len(got), len(want))
		}
	}
	if n := e.one("SELECT count() FROM system.tables WHERE database = currentDatabase() AND name " +
		"IN ('spans_other', 'spans_all', 'spans_all_trace_id_ts')"); n == "3" {
		of("spans_all", "SELECT SpanId FROM spans_all ORDER BY SpanId", want)
		of("spans_all_trace_id_ts",
			"SELECT DISTINCT TraceId FROM spans_all_trace_id_ts ORDER BY TraceId",
			e.column("SELECT DISTINCT TraceId FROM spans_all ORDER BY TraceId"))
	} else {
		of("spans", "SELECT SpanId FROM spans ORDER BY SpanId", want)
	}
	of("a materialized view", "SELECT SpanId FROM rollup ORDER BY SpanId", want)
	of("a materialized view of the lookup table",
		"SELECT TraceId FROM traces FINAL ORDER BY TraceId",
		e.column("SELECT DISTINCT TraceId FROM spans_trace_id_ts ORDER BY TraceId"))
}

// adopting is an engine with a table in adoption, and the spans that are stored there.
type adopting struct {
	*engine
	left []span
	want []string // IDs
}

// store stores more spans, and checks those that are stored.
func (e *adopting) store(when string) {
	e.t.Helper()
	e.insert("spans", e.left[:100])
	e.want, e.left = append(e.want, ids(e.left[:100])...), e.left[100:]
	e.stored(when, e.want)
}

// cannot checks that an operation is refused.
func (e *adopting) cannot(operation, want string) {
	e.t.Helper()
	if _, err := e.adopts(operation); err == nil || !strings.Contains(err.Error(), want) {
		e.t.Errorf("%s: %v, want %q", operation, err, want)
	}
}

// TestAdopt adopts tables of several shapes and finishes, one of them after going back and forth,
// while spans are stored: each span is in one table once, and the new table has everything that the
// old one had.
func TestAdopt(t *testing.T) {
	for _, shape := range []string{"clickstack.sql", "exporter.sql"} {
		t.Run(shape, func(t *testing.T) {
			e := &adopting{engine: newEngine(t), left: world()[:2400]}
			indexes := e.adoptable(shape)
			const columnsOf = "SELECT name || ' ' || type || ' ' || default_kind || ' ' || " +
				"default_expression || comment FROM system.columns WHERE database = " +
				"currentDatabase() AND table = 'spans' AND name != 'Later' ORDER BY name"
			columns := e.column(columnsOf)
			e.store("before")
			if shape == "clickstack.sql" {
				e.backAndForth()
			}
			e.must("prepare")
			e.must("swap")
			e.store("swapped again")
			if shape == "clickstack.sql" {
				e.is("x, y", "SELECT any(Later) FROM spans_all")
				e.exec("SELECT * FROM spans_all LIMIT 1")
				e.exec("CREATE VIEW users AS SELECT SpanId FROM spans_all")
				e.cannot("drop-history", "spans_all is read by "+e.Database()+".users")
				e.exec("DROP VIEW users")
				e.exec("ALTER TABLE spans DROP COLUMN Later")
				e.exec("ALTER TABLE spans_other DROP COLUMN Later")
				e.must("prepare")
				e.exec("SELECT * FROM spans_all LIMIT 1")
			}
			e.want = e.column("SELECT SpanId FROM spans")
			e.exec("TRUNCATE TABLE spans_other") // as its TTL does
			plan := e.must("finish")
			e.exec("TRUNCATE TABLE rollup")
			e.exec("INSERT INTO rollup SELECT SpanId FROM spans")
			e.store("finished")
			if after := e.column(columnsOf); !slices.Equal(after, columns) {
				t.Errorf("columns %q, want %q", after, columns)
			}
			create := e.one("SELECT create_table_query FROM system.tables WHERE database = " +
				"currentDatabase() AND name = 'spans'")
			for _, part := range append(regexp.MustCompile(`INDEX \w+ `).FindAllString(indexes, -1),
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
			e.run(plan.Steps[0].Undo, nil)
			e.is("0", "SELECT count() FROM spans_other")
		})
	}
}

// backAndForth prepares, cancels, swaps and undoes, and changes both tables meanwhile.
func (e *adopting) backAndForth() {
	e.t.Helper()
	e.cannot("swap", "is not begun; next: `adopt prepare`")
	before := e.snapshot()
	for _, operation := range []string{"undo", "cancel", "prepare", "undo", "cancel"} {
		e.must(operation)
	}
	if after := e.snapshot(); after != before {
		e.t.Errorf("prepare and cancel turned %s into %s", before, after)
	}
	e.must("prepare")
	e.exec("DROP VIEW spans_all_trace_id_ts")
	e.cannot("swap", "is not completely prepared; next: `adopt prepare`, or `adopt cancel`")
	e.must("prepare")
	e.store("prepared")
	e.cannot("finish", "is prepared; next: `adopt swap`")
	if plan := e.must("swap"); len(plan.Notes) != 1 ||
		!strings.Contains(plan.Notes[0], "rollup_mv") {
		e.t.Errorf("notes of swap: %q", plan.Notes)
	}
	e.store("swapped")
	e.is("100", "SELECT count() FROM spans")
	e.cannot("finish", "still holds 200 spans")
	e.cannot("cancel", "is swapped: run undo first")
	e.cannot("copy", `spans is partitioned by "toDate(Timestamp)" and spans_other by `+
		`"toYear(Timestamp)"`)
	e.exec("ALTER TABLE spans MODIFY TTL toDateTime(Timestamp) + toIntervalDay(9000)")
	const later = "ADD COLUMN Later String DEFAULT 'x, y' AFTER SpanName"
	e.exec("ALTER TABLE spans " + later)
	for range 2 { // whatever has changed
		if plan := e.must("undo"); !strings.Contains(plan.Notes[len(plan.Notes)-1],
			"spans_other keeps the spans") {
			e.t.Errorf("notes of undo: %q", plan.Notes)
		}
		e.store("undone")
	}
	e.is("400", "SELECT count() FROM spans")
	e.cannot("cancel", "spans_other holds 100 spans, which were stored between swap and undo")
	e.exec("ALTER TABLE spans_other DROP COLUMN Later")
	e.cannot("swap", `the TTL of spans is "`+moves+`" and that of spans_other is "`)
	e.exec("ALTER TABLE spans_other MODIFY TTL " + moves)
	e.exec("ALTER TABLE spans " + later)
	e.cannot("swap", "column Later exists in spans but not in spans_other: add it there and "+
		"rerun prepare")
	e.exec("ALTER TABLE spans_other " + later)
}

// TestAdoptKilled kills the command before and after each of its changing statements, runs it
// again, and stores spans meanwhile.
func TestAdoptKilled(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	e.adoptable("clickstack.sql")
	spans, want := world(), []string{}
	store := func() {
		e.insert("spans", spans[:5])
		want, spans = append(want, ids(spans[:5])...), spans[5:]
	}
	var (
		running   = make(chan *os.Process, 1)
		operation string
		seen      = map[string]bool{}
		kills     int
	)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN",
		e.through(func(w http.ResponseWriter, r *http.Request, statement string,
			next http.Handler) {
			kill := func(when string) bool {
				key := operation + when + randomName.ReplaceAllString(statement, "")
				if seen[key] || strings.HasPrefix(statement, "SELECT") ||
					strings.HasPrefix(statement, "CREATE OR REPLACE FUNCTION") {
					return false
				}
				seen[key] = true
				kills++
				_ = (<-running).Kill()
				return true
			}
			if kill("before") {
				return
			}
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			if kill("after") {
				return
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		}))
	for _, operation = range []string{"prepare", "cancel", "prepare ", "swap", "undo", "swap ",
		"finish --drop-history"} {
		if strings.HasPrefix(operation, "finish") {
			want = e.column("SELECT SpanId FROM spans")
		}
		for killed := true; killed; {
			cmd := exec.Command(path,
				append([]string{"clickhouse", "adopt"},
					append(strings.Fields(operation), "--table", "spans")...)...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running <- cmd.Process
			err := cmd.Wait()
			if killed = len(running) == 0; !killed {
				<-running
				if err != nil {
					t.Fatalf("%s: %v\n%s", operation, err, out.String())
				}
			}
			if store(); !strings.HasPrefix(operation, "finish") {
				e.stored(operation, want)
			}
		}
	}
	if got := e.column("SELECT SpanId FROM spans ORDER BY SpanId"); !slices.Equal(got,
		sorted(want)) {
		t.Errorf("spans has %d spans, want %d, or others", len(got), len(want))
	}
	e.is("0", "SELECT count() FROM system.tables WHERE database = currentDatabase() AND "+
		"match(name, 'spans_(other|all|dropped)')")
	if kills < 14 {
		t.Errorf("only %d kills", kills)
	}
}

// randomName is the random end of a name.
var randomName = regexp.MustCompile(`_[a-z2-7]{8}\b`)

// TestAdoptTwoAtOnce: an operator exchanges the tables before any query of another operator's plan,
// which must not take either table for a foreign one. Two operators make the same plan and run it
// at once: two exchanges would undo each other.
func TestAdoptTwoAtOnce(t *testing.T) {
	e := newEngine(t)
	e.adoptable("clickstack.sql")
	e.insert("spans", few())
	e.must("prepare")
	for at, met := 0, true; met; at++ {
		queries := 0
		_, err := operations["swap"](ofSpans, t.Context(),
			e.rewriting("", func(query string) string {
				if queries++; queries-1 == at {
					e.exec("EXCHANGE TABLES spans AND spans_other")
				}
				return query
			}))
		if met = queries > at; err != nil {
			t.Errorf("query %d: %v", at, err)
		}
	}
	e.must("undo")
	if _, err := adopt(t.Context(), ofSpans, "swap", e.rewriting("", func(query string) string {
		if strings.HasPrefix(query, "EXCHANGE") {
			e.exec(query)
		}
		return query
	})); err == nil || !strings.Contains(err.Error(), "another operator is undoing this step") {
		t.Errorf("a swap that somebody always undoes: %v", err)
	}
	for _, operation := range []string{"prepare", "swap", "undo", "swap", "drop-history"} {
		var planned, exchange, ran sync.WaitGroup
		planned.Add(2)
		exchange.Add(2)
		for range 2 {
			ran.Go(func() {
				plan, err := operations[operation](ofSpans, t.Context(), e.db)
				planned.Done()
				planned.Wait()
				met := false
				if err == nil {
					err = plan.Run(t.Context(), e.rewriting("", func(query string) string {
						if strings.HasPrefix(query, "EXCHANGE") && !met {
							met = true
							exchange.Done()
							exchange.Wait()
						}
						return query
					}), nil)
				}
				if err != nil {
					t.Errorf("%s: %v", operation, err)
				}
			})
		}
		ran.Wait()
		e.is(map[string]string{"prepare": "0", "undo": "0", "swap": "1",
			"drop-history": "1"}[operation],
			"SELECT toString(position(sorting_key, 'toStartOfInterval') > 0) FROM system.tables "+
				"WHERE database = currentDatabase() AND name = 'spans'")
		if operation != "drop-history" {
			e.stored(operation+" twice", ids(few()))
		}
	}
}

// rows are a table with some columns, in place of a system table.
func rows(columns string, values ...string) string {
	return "(SELECT * FROM (SELECT " + strings.Join(values, " UNION ALL SELECT ") + ") AS r (" +
		columns + "))"
}

// TestAdoptOnCluster adopts a table on a cluster of two shards, both in this engine, which cannot
// run statements with ON CLUSTER: it parses them, and runs them without. Every change reaches the
// cluster, and row policies and grants get the other names. TestReadOnlyAccess has real ones; only
// those created by SQL can be like these.
func TestAdoptOnCluster(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	policies := rows("database, short_name, table, select_filter, is_restrictive, apply_to_all, "+
		"apply_to_list, apply_to_except", "currentDatabase(), 'tenants', 'spans', "+
		`'TraceState = \'x\'', 1, 1, emptyArrayString(), ['root']`)
	grants := rows("database, table, column, user_name, role_name, is_partial_revoke, access_type",
		"currentDatabase(), 'spans', NULL, 'grafana', NULL, 0, 'SELECT'",
		`currentDatabase(), 'spans', 'TraceId', 'o\'hara', NULL, 0, 'SELECT'`)
	db := e.rewriting("", func(query string) string {
		query = strings.NewReplacer("system.row_policies", policies, "system.grants",
			grants).Replace(query)
		return oneServer(strings.Replace(query, "\n    engine,", "\n    replaceRegexpOne(engine, "+
			"'^MergeTree', 'ReplicatedMergeTree') AS engine,", 1))
	})
	a := adoption{Table: "spans", Cluster: "two"}
	if _, err := a.Copy(t.Context(), db, noon); err == nil ||
		!strings.Contains(err.Error(), "run this on one server of each shard, without --cluster") {
		t.Errorf("a copy: %v", err)
	}
	var text strings.Builder
	for _, operation := range []string{"prepare", "swap", "undo", "swap", "drop-history"} {
		plan, err := operations[operation](a, t.Context(), db)
		if err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		for _, step := range plan.Steps {
			fmt.Fprintln(&text, step.Does)
			for _, statement := range append(step.SQL, step.Undo...) {
				e.exec("EXPLAIN AST " + statement)
				local := strings.HasPrefix(statement, "INSERT") ||
					strings.HasPrefix(statement, "SELECT")
				if strings.Contains(statement, " ON CLUSTER `two`") == local {
					t.Errorf("on one server, or on all: %s", statement)
				}
				// as the old one, without a path
				if strings.HasPrefix(statement, "CREATE TABLE") &&
					!strings.Contains(statement, ") ENGINE = ReplicatedMergeTree\n") {
					t.Errorf("the new table has another engine: %s", statement)
				}
				fmt.Fprintln(&text, statement)
			}
		}
		for _, note := range plan.Notes {
			fmt.Fprintln(&text, note)
		}
		plan.Steps = slices.DeleteFunc(plan.Steps, func(s clickhouse.Step) bool {
			return strings.Contains(s.SQL[0], "ROW POLICY")
		})
		if err := plan.Run(t.Context(), db, nil); err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
	}
	for _, want := range []string{
		"CREATE ROW POLICY IF NOT EXISTS `tenants` ON CLUSTER `two` ON `DB`.`spans_other` FOR " +
			"SELECT USING TraceState = 'x' AS RESTRICTIVE TO ALL EXCEPT `root`",
		"DROP ROW POLICY IF EXISTS `tenants` ON CLUSTER `two` ON `DB`.`spans_other`",
		"GRANT ON CLUSTER `two` SELECT ON `DB`.`spans_other` TO `grafana`",
		"GRANT ON CLUSTER `two` SELECT ON `DB`.`spans_all` TO `grafana`",
		"GRANT ON CLUSTER `two` SELECT(`TraceId`) ON `DB`.`spans_all` TO `o'hara`",
		"REVOKE ON CLUSTER `two` SELECT(`TraceId`) ON `DB`.`spans_other` FROM `o'hara`",
		"EXCHANGE TABLES `DB`.`spans` AND `DB`.`spans_other` ON CLUSTER `two`",
		"run the INSERT on one server of each other shard, too",
	} {
		if want = strings.ReplaceAll(want, "`DB`",
			"`"+e.Database()+"`"); !strings.Contains(text.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
