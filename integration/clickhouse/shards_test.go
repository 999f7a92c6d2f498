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
	onCluster = regexp.MustCompile(" ON CLUSTER `[a-z]+`")
)

// creates2 runs the statements of a schema with a cluster on two shards.
func (e *engine) creates2(s clickhouse.Schema) {
	e.t.Helper()
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
		e.t.Skip("for the embedded engine only")
	}
	statements, err := s.Statements()
	if err != nil {
		e.t.Fatal(err)
	}
	for _, statement := range statements {
		if strings.HasPrefix(statement, "SELECT throwIf") {
			continue
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

// shard is the table in which the Distributed table looks for a trace.
func shard(table, id string) string {
	return fmt.Sprintf("%s_%d", table, 1+parse(id)[15]%2)
}

// TestUnusedShardsAreNotAsked: with a known ID the Distributed table asks the shard that has the trace, and no other.
func TestUnusedShardsAreNotAsked(t *testing.T) {
	e := newEngine(t)
	schema := clickhouse.Schema{Table: "spans", Cluster: "two"}
	e.creates2(schema)
	var ids []trace.TraceID
	for _, s := range world()[:100] {
		e.insert(shard("spans", s.trace), []span{s})
		if id := parse(s.trace); id[15]%2 == 1 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	e.exec("DROP VIEW spans_local")
	e.exec("CREATE VIEW spans_local AS SELECT * FROM spans_2 WHERE throwIf(shardNum() = 1, 'this shard was asked') = 0")
	e.fails("SELECT count() FROM spans", "this shard was asked")
	for _, some := range [][]trace.TraceID{ids[:1], ids} {
		if found := e.find("SpanId")(clickhouse.Traces(schema, some)); len(found) < len(some) {
			t.Errorf("%d spans of %d traces", len(found), len(some))
		}
	}
}

// TestDeleteOverShards: the partitions are those of all shards, and each deletes its own.
func TestDeleteOverShards(t *testing.T) {
	e := newEngine(t)
	schema := clickhouse.Schema{Table: "spans", Cluster: "two"}
	e.creates2(schema)
	e.exec("CREATE OR REPLACE VIEW spans_local AS SELECT *, _partition_id FROM merge(currentDatabase(), '^spans_[12]$') WHERE _table = 'spans_' || toString(shardNum())")
	spans := few()
	for _, s := range spans {
		e.insert(shard("spans", s.trace), []span{s})
	}
	var traces []trace.TraceID
	left := len(spans)
	for _, s := range spans {
		if id := parse(s.trace); len(traces) < 20 && !slices.Contains(traces, id) {
			traces = append(traces, id)
		}
		if slices.Contains(traces, parse(s.trace)) {
			left--
		}
	}
	d, err := clickhouse.DeleteTraces(schema, traces)
	for _, statement := range d.Statements(e.partitions(d, err)) {
		for _, table := range []string{"`spans_1`", "`spans_2`"} {
			e.exec(strings.Replace(onCluster.ReplaceAllString(statement, ""), "`spans_local`", table, 1))
		}
	}
	e.is(fmt.Sprint(left), "SELECT count() FROM spans")
}
