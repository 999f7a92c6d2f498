package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/migrate"
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

// only fails if there are tables of this name with a suffix other than these.
func (e *engine) only(table string, suffixes ...string) {
	e.t.Helper()
	keep := []string{"'" + table + "'", "'" + table + "_trace_id_ts'", "'" + table + "_trace_id_ts_mv'"}
	if views := e.column("SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View' AND startsWith(name, '" + table + "_trace_id_ts')"); len(views) != 2 {
		e.t.Errorf("views under the lookup's names: %v", views)
	}
	for _, suffix := range suffixes {
		keep = append(keep, "'"+table+suffix+"'")
	}
	if left := e.column("SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '" + table + "') AND name NOT IN (" + strings.Join(keep, ", ") + ")"); left != nil {
		e.t.Errorf("tables left: %v", left)
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

var runName = regexp.MustCompile("; run [A-Z0-9]+")

// TestMigrateInterrupted breaks the connection before each statement, which is also after the one
// before it, and runs the migration again each time; on one server while spans are stored. What runs
// next was shown by the dry run, which changes nothing. The cluster is one server: see oneServer.
func TestMigrateInterrupted(t *testing.T) {
	e := newEngine(t)
	old := few()
	e.template(old)
	live := world()[1000:]
	for cluster, copies := range map[string][]string{"": {"_old"}, "c": {"_local", "_old"}} {
		t.Run("cluster "+cluster, func(t *testing.T) {
			e := &engine{e.Engine, t, e.db}
			defer e.empty("template")
			if cluster == "" {
				e.exporterTable("spans")
			} else { // our own table of one server, in the other layout
				e.run([]string{createTable(t, clickhouse.Schema{Table: "spans", Layout: clickhouse.TraceFirst}), "INSERT INTO spans SELECT * FROM template"}, nil)
			}
			s := clickhouse.Schema{Database: e.Database(), Table: "spans", Cluster: cluster, TTL: 10 * 365 * 24 * time.Hour}
			want := ids(old)
			seen := map[string]bool{}
			var ran []string
			failed, moved := "", uint64(0)
			db := e.faulty(&faulty{
				fail: func(query string) bool {
					query = runName.ReplaceAllString(query, "")
					if strings.HasPrefix(query, "CREATE OR REPLACE FUNCTION") {
						query = "functions" // between two of them is nothing new
					}
					failed = query
					again := seen[query]
					seen[query] = true
					return !again
				},
				rewrite: func(query string) string {
					// An operator would not run the comment with the name of a run.
					if !strings.HasPrefix(query, "SELECT") && !strings.Contains(query, " MODIFY COMMENT ") {
						ran = append(ran, query)
					}
					return oneServer(query)
				},
			})
			var progress migrate.Progress
			for err := errFaulty; err != nil; {
				if cluster == "" {
					live := live[len(seen)]
					e.insert("spans", []span{live})
					want = append(want, fmt.Sprintf("%016x", live.id))
					for _, statement := range collectorTable("spans")[1:] { // by an exporter that starts with create_schema
						e.exec(strings.NewReplacer("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", "MATERIALIZED VIEW ", "MATERIALIZED VIEW IF NOT EXISTS ").Replace(statement))
					}
				}
				before := e.snapshot()
				shown, refused := migrate.Statements(t.Context(), e.faulty(&faulty{rewrite: oneServer}), s)
				if (refused != nil) != regexp.MustCompile("^ATTACH .*_remaining").MatchString(failed) || refused != nil && !strings.Contains(refused.Error(), " was detached") {
					t.Fatalf("dry run before %s: %v", failed, refused)
				}
				if after := e.snapshot(); after != before {
					t.Fatalf("the dry run changed %s to %s", before, after)
				}
				ran = nil
				if err = migrate.Run(t.Context(), db, s, func(p migrate.Progress) { progress, moved = p, moved+p.Rows }); err != nil && !errors.Is(err, errFaulty) {
					t.Fatal(err)
				}
				for _, statement := range ran {
					if refused == nil && !slices.Contains(shown, statement) && !strings.HasPrefix(statement, "DETACH") && !strings.HasPrefix(statement, "ATTACH") &&
						!strings.HasPrefix(statement, "SYSTEM SYNC") {
						t.Errorf("%s ran and was not shown", statement)
					}
				}
			}
			if len(seen) < 25 {
				t.Errorf("only %d interruptions", len(seen))
			}
			e.holds("spans", sorted(want))
			if cluster != "" {
				for _, suffix := range copies {
					e.holds("spans"+suffix, want)
				}
			}
			if kept := e.one("SELECT count() FROM spans_old"); fmt.Sprint(moved) != kept || fmt.Sprint(progress.Moved) != kept || progress.Left != 0 {
				t.Errorf("%s spans kept, %d in progress, the last %+v", kept, moved, progress)
			}
			e.only("spans", copies...)
		})
	}
}

// TestMigrateKeepsInsertsUnderWay: an insert that found the old table is stored,
// also when the migration's client does not wait for it.
func TestMigrateKeepsInsertsUnderWay(t *testing.T) {
	e := newEngine(t)
	old, late := few()[:200], world()[1000:1060]
	e.template(late)
	for table, impatient := range map[string]bool{"waits": false, "leaves": true} {
		e.run(collectorTable(table)[:1], nil) // a lookup view would slow the migration down
		e.insert(table, old)
		inserted := make(chan error, 1)
		go func() {
			_, err := e.Query(t.Context(), "INSERT INTO "+table+" SELECT * FROM template WHERE sleepEachRow(0.03) = 0")
			inserted <- err
		}()
		for e.one("SELECT count() FROM system.processes WHERE query LIKE 'INSERT INTO "+table+"%' AND current_database = currentDatabase()") == "0" {
			select {
			case err := <-inserted:
				t.Fatalf("the insert ended before the migration began: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
		s := clickhouse.Schema{Table: table}
		ctx, leave := context.WithCancel(t.Context())
		err := migrate.Run(ctx, e.faulty(&faulty{rewrite: func(query string) string {
			if impatient && strings.HasPrefix(query, "DETACH") {
				time.AfterFunc(50*time.Millisecond, leave)
			}
			return query
		}}), s, nil)
		leave()
		if impatient != errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for err != nil {
			err = migrate.Run(t.Context(), e.db, s, nil)
			if err != nil && !strings.Contains(err.Error(), "still used by some query") {
				t.Fatal(err)
			}
		}
		if err := <-inserted; err != nil {
			t.Error(err)
		}
		e.holds(table, ids(append(old[:len(old):len(old)], late...)))
		e.only(table, "_old")
	}
}

// TestMigrateBrokenInsideACopy: half of a partition has been copied when the
// INSERT ends, or goes on when its client has left.
func TestMigrateBrokenInsideACopy(t *testing.T) {
	e := newEngine(t)
	old := few()
	e.template(old)
	isCopy := func(query string) bool { return strings.HasPrefix(query, "INSERT INTO") }

	s := e.exporterTable("failed")
	half := e.faulty(&faulty{rewrite: func(query string) string {
		if isCopy(query) { // ClickHouse keeps the blocks before the failure
			e.exec(strings.Replace(query, " SETTINGS ", " LIMIT 50 SETTINGS ", 1))
			return "SELECT throwIf(1)"
		}
		return query
	}})
	if err := migrate.Run(t.Context(), half, s, nil); err == nil || !strings.Contains(err.Error(), "throwIf") {
		t.Fatal(err)
	}
	e.is("50", "SELECT count() FROM failed_copy")
	if err := migrate.Run(t.Context(), e.open("max_table_size_to_drop=4096"), s, nil); err != nil { // as if it were a large copy
		t.Fatal(err)
	}
	e.holds("failed", ids(old))

	s = e.exporterTable("left")
	ctx, leave := context.WithCancel(t.Context())
	slow := e.faulty(&faulty{rewrite: func(query string) string {
		if isCopy(query) {
			time.AfterFunc(200*time.Millisecond, leave)
			query = strings.Replace(query, " SETTINGS ", " WHERE sleepEachRow(0.003) = 0 SETTINGS ", 1)
		}
		return query
	}})
	if err := migrate.Run(ctx, slow, s, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	waiting := e.faulty(&faulty{rewrite: func(query string) string {
		if strings.Contains(query, "`left_copy` MOVE PARTITION") {
			for e.one("SELECT count() FROM system.processes WHERE query LIKE 'INSERT INTO%sleepEachRow%' AND current_database = currentDatabase()") != "0" {
				time.Sleep(time.Millisecond)
			}
		}
		return query
	}})
	if err := migrate.Run(t.Context(), waiting, s, nil); err != nil {
		t.Fatal(err)
	}
	e.holds("left", ids(old))
}

// TestMigrateProvesTheCopy changes each column of the copy, and leaves a row out.
func TestMigrateProvesTheCopy(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("template")[:1], nil)
	e.exec(`INSERT INTO template SELECT '2026-10-15 12:00:00.5', '0123456789abcdef0123456789abcdef', toString(number), 'p', 'state', 'name', 'Server', 'service',
		map('a', 'b'), 'scope', 'v1', map('c', 'd'), 7, 'Error', 'message', ['2026-10-15 12:00:00'], ['event'], [map('e', 'f')], ['t'], ['s'], ['st'], [map('g', 'h')] FROM numbers(10)`)
	s := e.exporterTable("spans")
	columns := e.column("SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'template'")
	changes := map[string]func(string) string{
		"fewer": func(query string) string {
			return strings.Replace(query, " SETTINGS ", " WHERE SpanId != '3' SETTINGS ", 1)
		},
		"more": func(query string) string {
			return strings.Replace(query, " SETTINGS ", " ARRAY JOIN range(if(SpanId = '3', 2, 1)) AS n SETTINGS ", 1)
		},
	}
	for _, column := range columns {
		changes[column] = func(query string) string {
			insert, values, _ := strings.Cut(query, "\nSELECT ")
			other := "defaultValueOfArgumentType(`" + column + "`)"
			if strings.Contains(column, ".") { // as long as its neighbours
				other = "arrayMap(x -> defaultValueOfArgumentType(x), `" + column + "`)"
			}
			return insert + "\nSELECT " + strings.Replace(values, "`"+column+"`", other, 1)
		}
	}
	if len(changes) != 2+22 {
		t.Fatalf("%d columns", len(columns))
	}
	for name, change := range changes {
		wrong := e.faulty(&faulty{rewrite: func(query string) string {
			if strings.HasPrefix(query, "INSERT INTO") {
				return change(query)
			}
			return query
		}})
		if err := migrate.Run(t.Context(), wrong, s, nil); err == nil || !strings.Contains(err.Error(), "the copy of partition 20261015 differs") {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.migrates(s)
	e.is("0", "SELECT count() FROM (SELECT * FROM spans EXCEPT SELECT * FROM template)")
	e.is("10", "SELECT count() FROM spans")
}

// TestMigrateComparesAtTheEnd: spans that got lost on the way are not passed over.
func TestMigrateComparesAtTheEnd(t *testing.T) {
	e := newEngine(t)
	old := few()
	e.template(old)
	s := e.exporterTable("spans")
	s.TTL = 10 * 365 * 24 * time.Hour
	moves := 0
	losing := e.faulty(&faulty{rewrite: func(query string) string {
		if strings.Contains(query, "`spans_copy` MOVE PARTITION") {
			if moves++; moves == 2 {
				e.exec("ALTER TABLE spans DROP PARTITION '2026-10-15'")
			}
		}
		return query
	}})
	for _, db := range []bool{true, false} { // repeated it says so again
		use := e.db
		if db {
			use = losing
		}
		if err := migrate.Run(t.Context(), use, s, nil); err == nil || !strings.Contains(err.Error(), "of 1 days, the first 2026-10-15, spans has fewer spans than spans_old") {
			t.Fatal(err)
		}
	}
	e.exec("INSERT INTO spans SELECT * FROM spans_old WHERE toDate(Timestamp, 'UTC') = '2026-10-15'")
	e.migrates(s)
	e.holds("spans", ids(old))
	e.only("spans", "_old")
}

// TestMigrateSyncsReplicas: what is counted through the Distributed table, every replica has.
func TestMigrateSyncsReplicas(t *testing.T) {
	e := newEngine(t)
	e.template(few())
	s := e.exporterTable("spans")
	s.Cluster = "c"
	counts, before := 0, ""
	db := e.faulty(&faulty{rewrite: func(query string) string {
		for table, rows := range map[string]string{"spans_copy": "spans_copy_local", "spans": "spans_local"} {
			name := "`" + e.Database() + "`.`%s`"
			if (strings.HasPrefix(query, "SELECT count(), ") || strings.HasPrefix(query, "SELECT max(")) && strings.Contains(query, " FROM "+fmt.Sprintf(name, table)) {
				counts++
				if want := "SYSTEM SYNC REPLICA ON CLUSTER `c` " + fmt.Sprintf(name, rows) + " LIGHTWEIGHT"; before != want {
					t.Errorf("before %s came %s, want %s", query, before, want)
				}
			}
		}
		before = query
		return oneServer(query)
	}})
	if err := migrate.Run(t.Context(), db, s, nil); err != nil {
		t.Fatal(err)
	}
	if want := (2*2 + 1) + 2 + 1; counts != want { // looks for a copy, proofs of one, the last comparison
		t.Errorf("%d counts, want %d", counts, want)
	}
}

// TestMigrateRefuses what it cannot migrate, and changes nothing. The full disk is made up, since a
// test cannot fill one.
func TestMigrateRefuses(t *testing.T) {
	e := newEngine(t)
	e.template(few()[:10])
	create, _, _ := strings.Cut(collectorTable("spans")[0], ",\n    INDEX")
	with := func(engine string) string { return create + ") ENGINE = " + engine }
	in1 := clickhouse.Schema{Database: e.Database()}
	onCluster := in1
	onCluster.Cluster = "c"
	notAtomic := e.Database() + "_memory"
	e.exec("CREATE DATABASE " + notAtomic + " ENGINE = Memory")
	defer e.exec("DROP DATABASE " + notAtomic)
	for name, c := range map[string]struct {
		schema clickhouse.Schema
		make   []string // besides the exporter's table, which "-" as the first leaves out
		want   string
	}{
		"a full disk":         {in1, []string{"OPTIMIZE TABLE spans"}, "0.0 MiB free: free space and run it again; nothing was changed"},
		"a typo":              {in1, []string{"-", "CREATE TABLE spnas AS template"}, "tables with a column TraceId are spnas, template."},
		"a column of nothing": {in1, []string{"ALTER TABLE spans ADD COLUMN Tenant String EPHEMERAL"}, "the EPHEMERAL column Tenant"},
		"more, rows there":    {onCluster, []string{"ALTER TABLE spans ADD COLUMN Tenant String", createTable(t, clickhouse.Schema{Table: "spans_local"})}, "the column Tenant"},
		"other columns":       {in1, []string{"-", "CREATE TABLE spans (Body String) ENGINE = MergeTree ORDER BY Body"}, "column Timestamp"},
		"sorted alike":        {clickhouse.Schema{Layout: clickhouse.TraceFirst}, []string{"-", "CREATE TABLE spans (TraceId String, Timestamp DateTime) ENGINE = MergeTree ORDER BY (toStartOfHour(Timestamp), TraceId, Timestamp)"}, "has another shape"},
		"an overlay":          {clickhouse.Schema{Layout: clickhouse.Overlay}, []string{"OPTIMIZE TABLE spans"}, "there is nothing to migrate"},
		"other database":      {clickhouse.Schema{Database: notAtomic}, []string{"-", "CREATE TABLE " + notAtomic + ".spans AS template"}, "engine Memory"},
		"Memory":              {in1, []string{"-", with("Memory")}, "engine Memory"},
		"Log":                 {in1, []string{"-", with("Log")}, "engine Log"},
		"ReplacingMergeTree":  {in1, []string{"-", with("ReplacingMergeTree ORDER BY TraceState")}, "engine ReplacingMergeTree"},
		"view":                {in1, []string{"-", "CREATE VIEW spans AS SELECT * FROM template"}, "engine View"},
		"view, cluster":       {onCluster, []string{"-", "CREATE VIEW spans AS SELECT * FROM template"}, "engine View"},
		"other Distributed":   {onCluster, []string{"-", "CREATE TABLE spans AS remote('127.0.0.1', currentDatabase(), template)"}, "engine Proxy"},
		"old":                 {in1, []string{"CREATE TABLE spans_old (x Int8) ENGINE = Memory"}, "spans_old exists"},
		"a backup":            {in1, []string{"CREATE TABLE spans_remaining AS template", "INSERT INTO spans_remaining SELECT * FROM template"}, "spans_remaining exists"},
		"an empty backup":     {in1, []string{"CREATE TABLE spans_remaining AS template"}, "spans_remaining exists"},
		"a copy":              {in1, []string{"CREATE TABLE spans_moving AS template"}, "spans_moving exists"},
		"another's table":     {in1, append([]string{createTable(t, clickhouse.Schema{Table: "spans_copy"})}, "INSERT INTO spans_copy SELECT * FROM template"), "spans_copy exists"},
		"staging":             {onCluster, []string{"CREATE TABLE spans_copy AS template"}, "spans_copy exists"},
		"another server's":    {onCluster, []string{"CREATE TABLE spans_copy_local AS template COMMENT 'traceflake: migration of spans of server x'"}, "spans_copy_local exists"},
		"begun, not its own":  {onCluster, []string{"CREATE TABLE spans_moving AS spans COMMENT 'traceflake: migration of spans of server 00000000-0000-0000-0000-000000000000'", "CREATE TABLE spans_copy_local AS template"}, "spans_copy_local exists"},
		"begun, full": {in1, []string{"CREATE TABLE spans_moving AS spans COMMENT 'traceflake: migration of spans'",
			createTable(t, clickhouse.Schema{Table: "spans_remaining"}), "INSERT INTO spans_remaining SELECT * FROM template"}, "spans_remaining exists"},
		"rows of other shape": {onCluster, []string{"CREATE TABLE spans_local AS template"}, "spans_local has another shape"},
		"rows by month": {onCluster, []string{strings.Replace(createTable(t, clickhouse.Schema{Table: "spans_local"}), "PARTITION BY toDate(", "PARTITION BY toYYYYMM(", 1)},
			`spans_local is partitioned by "toYYYYMM(Timestamp)"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{e.Engine, t, e.db}
			c.schema.Table = "spans"
			if c.make[0] == "-" {
				c.make = c.make[1:]
			} else {
				e.exporterTable("spans")
			}
			e.run(c.make, nil)
			db := e.faulty(&faulty{rewrite: func(query string) string {
				if name == "a full disk" {
					return strings.ReplaceAll(query, "toFloat64(unreserved_space)", "toFloat64(unreserved_space) * 0 + 1000")
				}
				return oneServer(query)
			}})
			run := func() error {
				err := migrate.Run(t.Context(), db, c.schema, nil)
				if (name == "a typo") != errors.Is(err, migrate.ErrNoTable) {
					t.Errorf("ErrNoTable: %v", err)
				}
				return err
			}
			e.refuses(c.want, run, func() error {
				if _, err := migrate.Statements(t.Context(), db, c.schema); err != nil {
					return err
				}
				return run() // it may show statements of which a guard fails
			})
			e.empty("template")
		})
	}
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

func TestNothingToMigrate(t *testing.T) {
	e := newEngine(t)
	e.template(few()[:10])
	s := clickhouse.Schema{Table: "fresh"}
	e.run(s.Statements())
	e.run([]string{"CREATE TABLE fresh_remaining AS template", "INSERT INTO fresh_remaining SELECT * FROM template"}, nil)
	before := e.snapshot()
	e.migrates(s)
	if after := e.snapshot(); after != before {
		t.Errorf("changed from %s to %s", before, after)
	}
}

// TestMigrateTwoAtOnce starts a second migration before each statement of the first: the second
// one ends, the first one says why it does not go on, and no span is lost.
func TestMigrateTwoAtOnce(t *testing.T) {
	e := newEngine(t)
	old := few()[:100]
	for i := range old {
		old[i].start = noon
	}
	e.template(old)
	for at, ended := 1, false; !ended; at += 3 {
		if at == 4 {
			at = 11 // between two functions is nothing new
		}
		s := e.exporterTable("spans")
		count, second := 0, error(nil)
		first := migrate.Run(t.Context(), e.faulty(&faulty{rewrite: func(query string) string {
			if strings.HasPrefix(query, "SELECT") {
				return query
			}
			if count++; count == at {
				second = migrate.Run(t.Context(), e.db, s, nil)
			}
			return query
		}}), s, nil)
		ended = count < at
		if second != nil {
			t.Errorf("before statement %d: the second one: %v", at, second)
		}
		if first != nil && !errors.Is(first, migrate.ErrTakenOver) {
			// The statement that was already on its way may fail by itself.
			t.Logf("before statement %d: the first one: %v", at, first)
			e.migrates(s)
		}
		e.migrates(s)
		e.holds("spans", ids(old))
		e.empty("template")
		if t.Failed() {
			t.Fatalf("second migration before statement %d of the first", at)
		}
	}
}
