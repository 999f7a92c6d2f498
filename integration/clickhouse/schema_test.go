package clickhouse_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// TestTTL: creating a table again leaves its TTL and that of the lookup table, and returns the
// statements that change them.
func TestTTL(t *testing.T) {
	e := newEngine(t)
	const day = 24 * time.Hour
	ttl := func(want time.Duration) {
		t.Helper()
		for table, column := range map[string]string{"odd-name": "Timestamp",
			"odd-name_trace_id_ts": "End"} {
			e.is(fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%.0f)", column, want.Seconds()),
				"SELECT extract(engine_full, 'TTL (.*) SETTINGS') FROM system.tables WHERE "+
					"database = currentDatabase() AND name = '"+table+"'")
		}
	}
	s := clickhouse.Schema{Database: e.Database(), Table: "odd-name", TTL: 2 * day}
	e.creates(s)
	e.is("1", "SELECT countIf(engine_full LIKE '%ttl_only_drop_parts = 1%') FROM system.tables "+
		"WHERE database = currentDatabase() AND name = 'odd-name'")
	for _, c := range []struct {
		ttl   time.Duration
		notes int
	}{{0, 0}, {2 * day, 0}, {3 * day, 2}} {
		s.TTL = c.ttl
		plan, err := s.Plan(t.Context(), e.db)
		if err != nil || len(plan.Notes) != c.notes {
			t.Fatalf("%v: notes %q, want %d (%v)", c.ttl, plan.Notes, c.notes, err)
		}
		e.creates(s)
		ttl(2 * day)
		for _, note := range plan.Notes {
			_, statement, _ := strings.Cut(note, "run\n")
			e.exec(strings.TrimSuffix(statement, ";"))
		}
	}
	ttl(3 * day)
}

// TestRepairs: create adds what an existing table lacks, and nothing else: columns of the exporter,
// indexes, functions, and a projection that is asked for; also for the spans that it has. Until
// then status reports it.
func TestRepairs(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Projection: clickhouse.NoProjection}
	e.creates(s)
	s.Projection = "" // as it is
	whole := func() []string {
		return sorted(strings.FieldsFunc(e.one("SELECT create_table_query FROM system.tables "+
			"WHERE database = currentDatabase() AND name = 'otel_traces'"), func(r rune) bool {
			return strings.ContainsRune(" ,()", r)
		}))
	}
	before := whole()
	e.insert("otel_traces", few())
	const change = "ALTER TABLE otel_traces DROP "
	for _, c := range []struct{ statement, want string }{
		{change + "INDEX idx_timestamp", "the index idx_timestamp"},
		{change + "INDEX idx_trace_id", "the index idx_trace_id"},
		{change + "COLUMN StatusMessage", "the column StatusMessage"},
		{"DROP FUNCTION traceIDAt", "the function traceIDAt"},
	} {
		problem := func(want string) {
			t.Helper()
			status, err := clickhouse.Adoption{}.Status(t.Context(), e.db)
			if got := fmt.Sprint(status.Problem); err != nil || got != want {
				t.Errorf("after %s: %q, want %q (%v)", c.statement, got, want, err)
			}
		}
		e.exec(c.statement)
		problem("clickhouse: otel_traces lacks " + c.want + ": `create` adds what is missing")
		e.creates(s)
		problem("<nil>")
		if after := whole(); !slices.Equal(after, before) {
			t.Errorf("%s\nwas before\n%s", after, before)
		}
	}
	e.is("300", "SELECT count() FROM otel_traces WHERE StatusMessage = ''")
	e.exec("SELECT traceIDAt(now(), 1, 1)")
	for range 2 {
		s.Projection = clickhouse.Charts
		e.creates(s)
	}
	e.exec("OPTIMIZE TABLE otel_traces FINAL")
	if plan := fmt.Sprint(e.exec("EXPLAIN projections = 1 SELECT count() FROM otel_traces " +
		"WHERE ServiceName = 'service-1'")); !strings.Contains(plan, "charts") {
		t.Errorf("the projection is not used: %s", plan)
	}
}

// older turns the statement for a table into that of an earlier version.
var older = strings.NewReplacer("Duration, _part_offset", "Duration",
	"min_compress_block_size = 1024, ", "")

// TestOlderTable: a table of an earlier version gets small compressed blocks, and a new projection
// for charts if that is asked for; afterwards it is like a new table, and all its parts merge.
func TestOlderTable(t *testing.T) {
	e := newEngine(t)
	e.creates(clickhouse.Schema{Table: "new"})
	table := older.Replace(
		createTable(clickhouse.Schema{Table: "spans", Version: e.one("SELECT version()")}))
	if strings.Contains(table, "_part_offset") || strings.Contains(table, "min_compress") {
		t.Fatal(table)
	}
	e.exec(table)
	e.insert("spans", few())
	e.fails("ALTER TABLE spans MOVE PARTITION ID '"+e.one("SELECT any(partition_id) FROM "+
		"system.parts WHERE active AND database = currentDatabase() AND table = 'spans'")+
		"' TO TABLE new", "Code: 36")
	s := clickhouse.Schema{Table: "spans"}
	definition := func(table string) string {
		words := regexp.MustCompile(`[^ ,]+`).FindAllString(e.one(
			"SELECT replace(create_table_query, '"+table+"', 'spans') FROM system.tables WHERE "+
				"database = currentDatabase() AND name = '"+table+"'"), -1)
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		projection  clickhouse.Projection
		notes, left int
	}{{"", 1, 1}, {clickhouse.NoProjection, 0, 1}, {clickhouse.Charts, 0, 0},
		{clickhouse.Charts, 0, 0}, {"", 0, 0}} {
		s.Projection = c.projection
		plan, err := s.Plan(t.Context(), e.db)
		if err != nil || len(plan.Notes) != c.notes {
			t.Errorf("%q: notes %q, want %d (%v)", c.projection, plan.Notes, c.notes, err)
		}
		e.creates(s)
		e.is("1", "SELECT countIf(engine_full LIKE '%min_compress_block_size = 1024%') FROM "+
			"system.tables WHERE database = currentDatabase() AND name = 'spans'")
		if equal := definition("spans") == definition("new"); equal != (c.left == 0) {
			t.Errorf("%q: the table is\n%s\nand a new one\n%s", c.projection, definition("spans"),
				definition("new"))
		}
		e.insert("spans", few())
	}
	e.exec("OPTIMIZE TABLE spans FINAL SETTINGS mutations_sync = 2, alter_sync = 2")
	e.is("['charts']", "SELECT DISTINCT projections FROM system.parts WHERE active AND "+
		"database = currentDatabase() AND table = 'spans'")
}

// TestLookupDropped: create recreates a lookup table that was dropped, with the TTL of the spans
// and all stored traces, even if it is interrupted before any statement and repeated, and spans of
// any time are stored before each statement.
func TestLookupDropped(t *testing.T) {
	s := clickhouse.Schema{Table: "spans"}
	for _, dropped := range []string{"both", "the table alone"} {
		t.Run(dropped, func(t *testing.T) {
			e := newEngine(t)
			e.exec(createTable(clickhouse.Schema{Table: "spans", TTL: 3650 * 24 * time.Hour}))
			all := few()
			left := all
			store := func() {
				e.insert("spans", left[:5])
				left = left[5:]
			}
			store()
			if dropped != "both" {
				e.run(collectorTable("spans")[1:], nil)
				e.exec("DROP TABLE spans_trace_id_ts")
			}
			for at, interrupted := 0, true; interrupted; at++ {
				statements := 0
				interrupted = false
				err := s.Create(t.Context(), e.rewriting("", func(query string) string {
					if strings.Contains(query, "formatRow") ||
						strings.HasPrefix(query, "CREATE OR REPLACE FUNCTION") {
						return query
					}
					// without the table an insert fails
					if dropped == "both" || e.one("EXISTS spans_trace_id_ts") == "1" {
						store()
					}
					if statements++; statements > at {
						interrupted = true
						return "interrupted"
					}
					return settled.Replace(query)
				}))
				if interrupted != (err != nil) {
					t.Fatalf("interrupted %t: %v", interrupted, err)
				}
			}
			e.is("toDateTime(End) + toIntervalSecond(315360000)", "SELECT extract(engine_full, "+
				"'TTL (.*) SETTINGS') FROM system.tables "+
				"WHERE database = currentDatabase() AND name = 'spans_trace_id_ts'")
			store()
			var traces [][16]byte
			for _, s := range all {
				traces = append(traces, parse(s.trace))
			}
			if got := e.find("SpanId")(clickhouse.Traces(s, traces)); !slices.Equal(sorted(got),
				ids(all[:len(all)-len(left)])) {
				t.Errorf("%d spans are found, want %d", len(got), len(all)-len(left))
			}
		})
	}
}

// TestRefused: a table with another schema is refused before anything is changed.
func TestRefused(t *testing.T) {
	e := newEngine(t)
	owned := createTable(clickhouse.Schema{Table: "spans"})
	otherKey := strings.Replace(owned, "TraceId, Timestamp)", "TraceId, SpanId)", 1)
	exporter := collectorTable("spans")
	local := strings.Replace(owned, "`spans`", "`spans_local`", 1)
	const front = "CREATE TABLE spans AS spans_local ENGINE = Distributed(two, currentDatabase(), "
	for name, c := range map[string]struct {
		of   clickhouse.Schema
		make []string
		want string // "" if it is right
	}{
		"exporter's": {clickhouse.Schema{}, exporter[:1],
			"spans has another shape"},
		"somebody's view": {clickhouse.Schema{}, []string{"CREATE VIEW spans AS SELECT 1 AS x"},
			"table spans is a View, not a table of spans; it was not changed: adopt it or choose"},
		"somebody's table": {clickhouse.Schema{},
			[]string{"CREATE TABLE spans (x Int8) ENGINE = Log"},
			"table spans is a Log, not a table of spans"},
		"owned, a column of another type": {clickhouse.Schema{},
			[]string{strings.Replace(owned, "Duration UInt64", "Duration Int64", 1)},
			"spans has another shape"},
		"lookup table alone": {clickhouse.Schema{}, exporter[1:2], ""},
		"a view in its place": {clickhouse.Schema{},
			[]string{"CREATE VIEW spans_trace_id_ts AS SELECT 1 AS id"},
			"spans_trace_id_ts is a View, not the exporter's lookup table"},
		"lookup table on one server": {clickhouse.Schema{Cluster: "two"}, exporter[1:2],
			"spans_trace_id_ts is a MergeTree, not Distributed over spans_local_trace_id_ts"},
		"another sorting key": {clickhouse.Schema{}, []string{otherKey},
			"spans has another shape"},
		"exporter's, cluster": {clickhouse.Schema{Cluster: "two"}, exporter[:1],
			"not Distributed over spans_local; nothing was changed"},
		"Distributed over something else": {clickhouse.Schema{Cluster: "two"},
			[]string{local, strings.Replace(local, "spans_local", "spans_locally", 1),
				front + "spans_locally)"}, "not Distributed over spans_local; nothing was changed"},
		"cluster": {clickhouse.Schema{Cluster: "two"},
			[]string{local, front + "spans_local)"}, ""},
		"no such database": {clickhouse.Schema{Database: "not_there"}, nil, "not_there"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{e.Engine, t, e.db}
			defer e.empty()
			e.run(c.make, nil)
			c.of.Table = "spans"
			db := e.rewriting("", oneServer)
			create := func() error { return c.of.Create(t.Context(), db) }
			if c.want != "" {
				e.refuses(c.want, create)
			} else if err := create(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVersion: a server that is too old is refused.
func TestVersion(t *testing.T) {
	e := newEngine(t)
	for version, ok := range map[string]bool{"26.2.9.1": false, "26.3.1.1": true, "9.12.1": false,
		"26.10.1.1": true, "25.12.1.1": false} {
		_, err := clickhouse.Schema{}.Plan(t.Context(),
			e.rewriting("",
				func(query string) string {
					return strings.ReplaceAll(query, "version()",
						"'"+version+"'")
				}))
		if ok != (err == nil) || !ok &&
			!strings.Contains(err.Error(), "the server is ClickHouse "+version+
				", which is too old: upgrade it to 26.3") {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func (e *engine) traceIDs(query string) (ids []trace.TraceID) {
	e.t.Helper()
	for _, text := range e.column(query) {
		ids = append(ids, parse(text))
	}
	return ids
}

var sqlBlock = regexp.MustCompile("(?ms)^ *```sql\n(.*?)```")

// TestDocumentedSQL runs the SQL of docs/clickhouse.md, on each kind of table and over two shards.
func TestDocumentedSQL(t *testing.T) {
	id := random(1)[0].String()
	params := clickhouse.Query{Params: []clickhouse.Param{{Name: "id", Value: id},
		{Name: "ids", Value: "['" + id + "']"}, {Name: "service", Value: "a"},
		{Name: "user", Value: "b"}, {Name: "from", Value: "2026-10-15 10:00:00"},
		{Name: "to", Value: "2026-10-15 11:00:00"}, {Name: "first", Value: "2026-10-15 11:00:00"},
		{Name: "last", Value: ""}}}
	for _, s := range []clickhouse.Schema{{}, {Cluster: "two"}} {
		e := newEngine(t)
		e.tables(s)
		e.exec(strings.ReplaceAll(read("testdata/logs.sql"), "{table}", "otel_logs"))
		queries := 0
		for _, block := range sqlBlock.FindAllStringSubmatch(read("../../docs/clickhouse.md"), -1) {
			sql := strings.TrimSpace(block[1])
			switch {
			case strings.HasPrefix(sql, "GRANT"), // see TestRights
				strings.Contains(sql, ";"): // see TestExportersTable
				continue
			// runs on the table that holds the rows
			case s.Cluster != "" && strings.HasPrefix(sql, "ALTER"):
				continue
			case strings.HasPrefix(sql, "reinterpretAsUInt64"):
				if cluster, err := (clickhouse.Schema{Cluster: "c"}).Statements(); err != nil ||
					!strings.Contains(strings.Join(cluster, "\n"), sql+")") {
					t.Errorf("the Distributed table is not sharded by %s (%v)", sql, err)
				}
				// each text has a shard
				e.exec("SELECT " + sql + " % 16 FROM (SELECT arrayJoin(['', 'abc', repeat('z', " +
					"32), repeat('F', 32)]) AS TraceId)")
				continue
			}
			if _, err := e.db.ExecContext(t.Context(), sql, params.Args()...); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			queries++
		}
		if queries < 2 {
			t.Errorf("only %d queries in the page", queries)
		}
	}
}

// TestExportersTable: with the changes that the page describes for the exporter's table, a trace is
// found through them, also if it is stored later, deletions show at once, and DELETE FROM is
// refused if there is a projection.
func TestExportersTable(t *testing.T) {
	for name, reads := range map[string]string{"text(": "idx_trace_id", "by_trace": "by_trace"} {
		e := newEngine(t)
		e.run(collectorTable("otel_traces"), nil)
		spans := few()
		e.insert("otel_traces", spans[:200])
		for _, block := range sqlBlock.FindAllStringSubmatch(read("../../docs/clickhouse.md"), -1) {
			if strings.Contains(block[1], name) {
				e.run(strings.Split(strings.TrimSpace(block[1]), ";\n"), nil)
			}
		}
		e.insert("otel_traces", spans[200:])
		gone, kept := spans[0].trace, spans[len(spans)-1].trace
		count := func(id string) string {
			return e.one("SELECT count() FROM otel_traces WHERE TraceId = '" + id + "'")
		}
		of := func(id string) string {
			return fmt.Sprint(countIf(spans, func(s span) bool { return s.trace == id }))
		}
		plan := fmt.Sprint(e.exec("EXPLAIN indexes = 1, projections = 1 SELECT * FROM " +
			"otel_traces WHERE TraceId = '" + gone + "'"))
		if !strings.Contains(plan, reads) || count(gone) != of(gone) || count(kept) != of(kept) {
			t.Errorf("%s: %s and %s spans, want %s and %s; %s", name, count(gone), count(kept),
				of(gone), of(kept), plan)
		}
		e.exec("ALTER TABLE otel_traces DELETE WHERE TraceId = '" + gone +
			"' SETTINGS mutations_sync = 2")
		if count(gone) != "0" || count(kept) != of(kept) {
			t.Errorf("%s: after a deletion there are %s and %s spans", name, count(gone),
				count(kept))
		}
		if name == "by_trace" {
			e.fails("DELETE FROM otel_traces WHERE TraceId = '"+kept+"'", "SUPPORT_IS_DISABLED")
		}
	}
}
