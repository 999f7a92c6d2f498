package collector

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
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
	old := e.Rows(t, "SELECT SpanId FROM otel_traces_other")
	adopts(func(a clickhouse.Adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
		return a.Finish(ctx, db, true)
	})
	close(end)
	writers.Wait()
	stored := map[string]bool{}
	rows := append(e.Rows(t, "SELECT SpanId FROM otel_traces"), old...)
	for _, row := range rows {
		stored[row[0]] = true
	}
	if n := int(next.Load()); len(rows) != n || len(stored) != n || n < 20*3*2*rounds {
		t.Errorf("%d spans of %d are stored, %d of them different", len(rows), n, len(stored))
	}
	if traces := e.Rows(t, "SELECT toString(uniqExact(TraceId)) FROM otel_traces_trace_id_ts")[0][0]; traces != fmt.Sprint(len(stored)/2) {
		t.Errorf("%s traces of %d are in the lookup table", traces, len(stored)/2)
	}
	t.Logf("%d exchanges, %d spans, a materialized view has %s of them", 2*rounds+1, len(stored), e.Rows(t, "SELECT toString(count()) FROM rollup")[0][0])
	if create := e.Rows(t, "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'otel_traces'")[0][0]; !strings.Contains(create, "TTL toDateTime(Timestamp) + toIntervalDay(30)") ||
		!strings.Contains(create, "ORDER BY (toStartOfInterval(Timestamp") {
		t.Errorf("the table is %s", create)
	}
}
