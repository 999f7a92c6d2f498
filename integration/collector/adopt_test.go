package collector

import (
	"context"
	"database/sql"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
)

// batch is ten traces of two spans that begin now, with numbers as span IDs.
func batch(ids *idgen.Generator, first uint64) ptrace.Traces {
	all := ptrace.NewTraces()
	resource := all.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "writer")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	for range 10 {
		traceID, _ := ids.NewIDs(context.Background())
		for range 2 {
			s := spans.AppendEmpty()
			var id [8]byte
			binary.BigEndian.PutUint64(id[:], first)
			first++
			s.SetTraceID(pcommon.TraceID(traceID))
			s.SetSpanID(id)
			s.SetName("work")
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		}
	}
	return all
}

// TestAdoptUnderInserts adopts the table of the Collector's exporter, goes back, adopts it again and
// finishes, many times over, while three exporters store spans and restart: each span is stored once.
func TestAdoptUnderInserts(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
	t.Setenv("CLICKHOUSE_DATABASE", e.Database())
	options, err := chgo.ParseDSN(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	exporters := make([]exporter.Traces, 3)
	exporters[0] = collector(t, examples+"overlay.yaml") // creates the tables
	e.Rows(t, "CREATE TABLE rollup (SpanId String) ENGINE = MergeTree ORDER BY SpanId")
	e.Rows(t, "CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT SpanId FROM otel_traces")

	ids := idgen.New()
	var next, batches atomic.Uint64
	var writers sync.WaitGroup
	end := make(chan struct{})
	for i := range exporters {
		writers.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if n := batches.Add(1); exporters[i] == nil || n%50 == 0 {
					exporters[i] = collector(t, examples+"overlay.yaml") // a restart, which creates the schema
				}
				if err := exporters[i].ConsumeTraces(t.Context(), batch(ids, next.Add(20)-20)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sort := func(query string) (all []string) {
		for _, row := range e.Rows(t, query) {
			all = append(all, row[0])
		}
		slices.Sort(all)
		return all
	}
	adopts := func(operation func(clickhouse.Adoption, context.Context, *sql.DB) (clickhouse.Plan, error)) {
		t.Helper()
		plan, err := operation(clickhouse.Adoption{}, t.Context(), db)
		if err == nil {
			err = plan.Run(t.Context(), db, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		for target := batches.Load() + 3; batches.Load() < target && !t.Failed(); { // each state gets inserts
			time.Sleep(time.Millisecond)
		}
	}
	const rounds = 6
	adopts(clickhouse.Adoption.Prepare)
	for range rounds {
		adopts(clickhouse.Adoption.Swap)
		adopts(clickhouse.Adoption.Undo)
	}
	adopts(clickhouse.Adoption.Swap)
	old := sort("SELECT SpanId FROM otel_traces_other")
	// An insert that is running has stored spans, but not yet the rows of their lookup.
	missing := sort("SELECT DISTINCT TraceId FROM otel_traces_all WHERE TraceId NOT IN (SELECT TraceId FROM otel_traces_trace_id_ts)")
	for deadline := time.Now().Add(10 * time.Second); len(missing) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		found := sort("SELECT DISTINCT TraceId FROM otel_traces_trace_id_ts")
		missing = slices.DeleteFunc(missing, func(id string) bool {
			_, there := slices.BinarySearch(found, id)
			return there
		})
	}
	if len(missing) > 0 {
		t.Errorf("%d traces are not in the lookup table", len(missing))
	}
	adopts(func(a clickhouse.Adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
		return a.Finish(ctx, db, true)
	})
	close(end)
	writers.Wait()
	stored := append(sort("SELECT SpanId FROM otel_traces"), old...)
	slices.Sort(stored)
	if n := int(next.Load()); len(stored) != n || len(slices.Compact(slices.Clone(stored))) != n || n < 20*3*2*rounds {
		t.Errorf("%d spans of %d are stored, %d of them different", len(stored), n, len(slices.Compact(slices.Clone(stored))))
	}
	fed := len(sort("SELECT SpanId FROM rollup"))
	t.Logf("%d exchanges, %d spans, of which a materialized view missed %d", 2*rounds+1, len(stored), len(stored)-fed)
	if create := e.Rows(t, "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'otel_traces'")[0][0]; !strings.Contains(create, "TTL toDateTime(Timestamp) + toIntervalDay(30)") ||
		!strings.Contains(create, "ORDER BY (toStartOfInterval(Timestamp") {
		t.Errorf("the table is %s", create)
	}
}
