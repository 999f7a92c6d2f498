package clickhouse_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

var sqlBlock = regexp.MustCompile("(?ms)^ *```sql\n(.*?)```")

// TestDocumentedSQL runs what docs/clickhouse.md shows, on each table and on one over two shards.
func TestDocumentedSQL(t *testing.T) {
	id := random(1)[0].String()
	params := clickhouse.Query{Params: []clickhouse.Param{{Name: "id", Value: id}, {Name: "ids", Value: "['" + id + "']"}, {Name: "service", Value: "a"},
		{Name: "name", Value: "b"}, {Name: "from", Value: "2026-10-15 10:00:00"}, {Name: "to", Value: "2026-10-15 11:00:00"}}}
	for _, s := range []clickhouse.Schema{{}, {Layout: clickhouse.TraceFirst}, {Layout: clickhouse.Overlay, Table: "otel_traces"}, {Cluster: "two"}} {
		e := newEngine(t)
		e.tables(s)
		queries := 0
		for _, block := range sqlBlock.FindAllStringSubmatch(read("../../docs/clickhouse.md"), -1) {
			sql := strings.TrimSpace(block[1])
			switch {
			case strings.HasPrefix(sql, "GRANT"): // see TestRights
				continue
			case s.Cluster != "" && strings.HasPrefix(sql, "ALTER"): // runs on the table that holds the rows
				continue
			case strings.HasPrefix(sql, "reinterpretAsUInt64"):
				if cluster, err := (clickhouse.Schema{Cluster: "c"}).Statements(); err != nil || !strings.Contains(strings.Join(cluster, "\n"), sql+")") {
					t.Errorf("the Distributed table is not sharded by %s (%v)", sql, err)
				}
				e.exec("SELECT " + sql + " % 16 FROM (SELECT arrayJoin(['', 'abc', repeat('z', 32), repeat('F', 32)]) AS TraceId)") // each text has a shard
				continue
			}
			if _, err := e.db.ExecContext(t.Context(), sql, params.Args()...); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			queries++
		}
		if queries < 4 {
			t.Errorf("only %d queries in the page", queries)
		}
	}
}
