package clickhouse_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// older turns the statement for a table into that of an earlier version.
var older = strings.NewReplacer("Duration, _part_offset", "Duration",
	"min_compress_block_size = 1024, ", "")

// TestLookupDropped: create recreates a lookup table that was dropped, with the TTL of the spans
// and all stored traces, even if it is interrupted before any statement and repeated, and spans of
// any time are stored before each statement.
func TestLookupDropped(t *testing.T) {
	s := clickhouse.Schema{Table: "spans"}
	for _, dropped := range []string{"both", "the table alone"} {
		t.Run(dropped, func(t *testing.T) {
			e := newEngine(t)
			e.exec(createTable(clickhouse.Schema{Table: "spans", TTL: 3650 * 24 * time.Hour}))
			left := few()
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
					if reading.MatchString(query) ||
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
			e.is("0", "SELECT countIf(TraceId NOT IN (SELECT TraceId FROM spans_trace_id_ts)) "+
				"FROM spans")
		})
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
				strings.Contains(sql, ";"): // see TestScripts
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

// TestOtherServers: a server that is too old is refused. In a replicated database, a table that is
// not replicated would be on one server only, and so would an exchange of one of several replicas.
func TestOtherServers(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans")[:1], nil)
	for _, c := range []struct{ is, other, want string }{
		{"version()", "'26.2.9.1'", "the server is ClickHouse 26.2.9.1, which is too old: upgrade"},
		{"version()", "'9.12.1'", "the server is ClickHouse 9.12.1, which is too old: upgrade"},
		{"version()", "'26.3.1.1'", "ENGINE = MergeTree\n"},
		{"version()", "'26.10.1.1'", "ENGINE = MergeTree\n"},
		{"engine AS database_engine", "'Replicated' AS database_engine",
			"ENGINE = ReplicatedMergeTree\n"},
		{"system.replicas", "(SELECT currentDatabase() AS database, 'spans' AS table, 2 AS " +
			"total_replicas)", "spans has 2 replicas: name their cluster with --cluster"},
	} {
		db := e.rewriting("", func(query string) string {
			return strings.Replace(query, c.is, c.other, 1)
		})
		plan, err := clickhouse.Schema{}.Plan(t.Context(), db)
		if c.is == "system.replicas" {
			plan, err = ofSpans.Prepare(t.Context(), db)
		}
		got := fmt.Sprint(err, plan.SQL())
		if !strings.Contains(got, c.want) || strings.Count(got, "ENGINE = ") !=
			2*strings.Count(c.want, "ENGINE = ") {
			t.Errorf("%s: %s, want %s", c.other, got, c.want)
		}
	}
}
