package clickhouse_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// The cluster "two" of testdata/engine.xml has two shards in one engine: each table that holds rows is created twice, NAME_1 and NAME_2, and
// NAME_local is a view that shows a shard its own. Neither connections between servers nor replicas are tested by it.
var (
	local     = regexp.MustCompile("`([a-z_]+)_local`")
	onCluster = regexp.MustCompile(" ON CLUSTER [`'][a-z{}]+[`']")
)

// tables runs the statements of a schema: for an Overlay on the exporter's table, with a cluster on two shards.
func (e *engine) tables(s clickhouse.Schema) {
	e.t.Helper()
	if s.Layout == clickhouse.Overlay {
		e.run(collectorTable(s.Table)[:1], nil)
	}
	if s.Cluster == "" {
		e.run(s.Statements())
		return
	}
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
		e.t.Skip("for the embedded engine only")
	}
	statements, err := s.Statements()
	if !s.KeepLookup && err == nil { // DropLookup creates the views again
		var drop []string
		drop, err = s.DropLookup()
		statements = append(statements, drop...)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	for _, statement := range statements {
		if e.exec("EXPLAIN AST " + statement); !onCluster.MatchString(statement) {
			e.t.Errorf("only on one server: %s", statement)
		}
		statement = strings.ReplaceAll(onCluster.ReplaceAllString(statement, ""), "ReplicatedMergeTree", "MergeTree")
		switch {
		case strings.Contains(statement, "ENGINE = Distributed"):
			e.exec(statement)
		case local.MatchString(statement):
			for _, shard := range []string{"_1", "_2"} {
				view := strings.Replace(statement, "_mv`", "_mv"+shard+"`", 1)
				e.exec(local.ReplaceAllString(view, "`${1}"+shard+"`"))
			}
			if name := local.FindStringSubmatch(statement)[1]; strings.HasPrefix(statement, "CREATE TABLE") {
				e.exec(fmt.Sprintf("CREATE VIEW %[1]s_local AS SELECT * FROM merge(currentDatabase(), '^%[1]s_[12]$') WHERE _table = '%[1]s_' || toString(shardNum())", name))
			}
		default:
			e.exec(statement)
		}
	}
}

// insert2 stores spans, with a cluster in the tables in which the Distributed table looks for their traces.
func (e *engine) insert2(s clickhouse.Schema, spans []span) {
	e.t.Helper()
	if s.Cluster == "" {
		e.insert(s.Table, spans)
		return
	}
	for shard := range 2 {
		own := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return int(parse(s.trace)[15])%2 != shard })
		e.insert(fmt.Sprint(s.Table, "_", 1+shard), own)
	}
}

// testUnusedShards: with known IDs the Distributed table asks the shard that has the traces, and no other.
func testUnusedShards(t *testing.T, e *engine, s clickhouse.Schema) {
	ids := e.traceIDs("SELECT DISTINCT TraceId FROM spans_2 WHERE TraceId > traceIDMin('2026-10-14 22:00:00') ORDER BY TraceId LIMIT 100")
	e.exec("CREATE OR REPLACE VIEW spans_local AS SELECT * FROM spans_2 WHERE throwIf(shardNum() = 1, 'this shard was asked') = 0")
	e.fails("SELECT count() FROM spans", "this shard was asked")
	for _, some := range [][]trace.TraceID{ids[:1], ids} {
		if found := e.find("SpanId")(clickhouse.Traces(s, some)); len(found) < len(some) {
			t.Errorf("%d spans of %d traces", len(found), len(some))
		}
	}
}
