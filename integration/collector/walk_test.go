package collector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/exporter"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestAdoptWalk adopts the table of the Collector's exporter. Two operators swap and undo
// concurrently, and are killed at any moment, while three exporters store spans and restart. Then
// one of them swaps and finishes. Each span is stored once. TRACEFLAKETEST_SWAPS is the minimum number
// of exchanges.
func TestAdoptWalk(t *testing.T) {
	want := 8
	if n, err := strconv.Atoi(os.Getenv("TRACEFLAKETEST_SWAPS")); err == nil {
		want = n
	}
	path := child.Build(t, child.Traceflake)
	e := database(t)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", e.DSN())
	collector(t, examples+"overlay.yaml") // creates the tables
	e.Rows(t, "CREATE TABLE rollup (SpanId String) ENGINE = MergeTree ORDER BY SpanId")
	e.Rows(t, "CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT SpanId FROM otel_traces")
	command := func(operation string, flags ...string) *exec.Cmd {
		return exec.Command(path,
			append([]string{"clickhouse", "adopt", operation}, flags...)...)
	}
	adopt := func(operation string, flags ...string) {
		t.Helper()
		child.Output(t, 0, command(operation, flags...))
	}
	adopt("prepare", "--skip-access") // this engine shows no policies

	generator := idgen.New()
	var next atomic.Uint64
	var swapped, killed atomic.Int64
	var operators, writers sync.WaitGroup
	walking, arrive := context.WithCancel(t.Context())
	writing, end := context.WithCancel(t.Context())
	defer end()
	defer arrive()
	runs := func(ctx context.Context) bool { return ctx.Err() == nil && !t.Failed() }
	for range 3 {
		writers.Go(func() {
			var to exporter.Traces
			for n := 0; runs(writing); n++ {
				if n%20 == 0 { // a restart, which creates the schema
					to = collector(t, examples+"overlay.yaml")
				}
				if err := to.ConsumeTraces(t.Context(),
					batch(generator, next.Add(20)-20)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for operator := range 2 {
		random := rand.New(rand.NewPCG(uint64(operator), 7))
		operators.Go(func() {
			for runs(walking) {
				cmd := command([]string{"swap", "undo"}[random.IntN(2)])
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				// Half of them end by themselves, so that a busy machine gets anywhere.
				limit := []time.Duration{2 * time.Second, time.Hour}[random.IntN(2)]
				kill := time.AfterFunc(time.Duration(random.Int64N(int64(limit))), func() {
					if cmd.Process.Kill() == nil {
						killed.Add(1)
					}
				})
				_ = cmd.Wait() // it may have been killed, or met the other operator
				kill.Stop()
				swapped.Add(int64(strings.Count(out.String(), " has the name ")))
			}
		})
	}
	wait := func(until func() bool) {
		for !until() && !t.Failed() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait(func() bool { return swapped.Load() >= int64(want) })
	arrive()
	operators.Wait()
	adopt("swap") // nobody interrupts it
	stored := next.Load() + 20*6
	wait(func() bool { return next.Load() >= stored }) // in the new table
	old := e.Rows(t, "SELECT SpanId FROM otel_traces_other")
	adopt("finish", "--drop-history")
	end()
	writers.Wait()

	spans := map[string]bool{}
	rows := append(e.Rows(t, "SELECT SpanId FROM otel_traces"), old...)
	for _, row := range rows {
		spans[row[0]] = true
	}
	n := int(next.Load())
	if len(rows) != n || len(spans) != n || len(old) == 0 {
		t.Errorf("%d spans of %d are stored, %d of them different, %d in the old table", len(rows),
			n, len(spans), len(old))
	}
	const distinct = "SELECT toString(uniqExact(TraceId)) FROM otel_traces_trace_id_ts"
	if traces := e.Rows(t, distinct)[0][0]; traces != fmt.Sprint(n/2) {
		t.Errorf("%s traces of %d are in the lookup table", traces, n/2)
	}
	create := e.Rows(t, "SELECT create_table_query FROM system.tables "+
		"WHERE database = currentDatabase() AND name = 'otel_traces'")[0][0]
	if !strings.Contains(create, "TTL toDateTime(Timestamp) + toIntervalDay(30)") ||
		!strings.Contains(create, "ORDER BY (toStartOfInterval(Timestamp") {
		t.Errorf("the table is %s", create)
	}
	t.Logf("%d exchanges, %d kills, %d spans, a materialized view has %s of them", swapped.Load(),
		killed.Load(), n, e.Rows(t, "SELECT toString(count()) FROM rollup")[0][0])
}
