// Package collector tests the configurations in examples/collector: it parses both with the
// Collector's own code, and sends spans of the SDKs for Go and JavaScript through its ClickHouse
// exporter into the tables.
package collector

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// examples is the folder of the configurations.
const examples = "../../examples/collector/"

// exporterConfig reads a configuration as the Collector does, and returns the exporter's part.
func exporterConfig(t *testing.T, file string) *clickhouseexporter.Config {
	t.Helper()
	otlp, batch := otlpreceiver.NewFactory(), batchprocessor.NewFactory()
	clickhouse := clickhouseexporter.NewFactory()
	resolver := confmap.ResolverSettings{
		URIs: []string{"file:" + file},
		ProviderFactories: []confmap.ProviderFactory{
			fileprovider.NewFactory(), envprovider.NewFactory(),
		},
	}
	provider, err := otelcol.NewConfigProvider(
		otelcol.ConfigProviderSettings{ResolverSettings: resolver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	config, err := provider.Get(t.Context(), otelcol.Factories{
		Receivers:  map[component.Type]receiver.Factory{otlp.Type(): otlp},
		Processors: map[component.Type]processor.Factory{batch.Type(): batch},
		Exporters:  map[component.Type]exporter.Factory{clickhouse.Type(): clickhouse},
		Telemetry:  telemetry.NewFactory(func() component.Config { return &struct{}{} }),
	})
	if err == nil {
		err = config.Validate()
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	part, ok := config.Exporters[component.MustNewID("clickhouse")].(*clickhouseexporter.Config)
	if !ok {
		t.Fatalf("%s has no clickhouse exporter", file)
	}
	return part
}

// database returns a fresh database, which the configurations name.
func database(t *testing.T) *servers.Engine {
	t.Helper()
	e := child.ForTest(t, servers.ClickHouse)
	t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
	t.Setenv("CLICKHOUSE_DATABASE", e.Database())
	return e
}

// collector starts the Collector's exporter with the configuration of a file.
func collector(t *testing.T, file string) exporter.Traces {
	t.Helper()
	config := exporterConfig(t, file)
	factory := clickhouseexporter.NewFactory()
	config.QueueSettings = factory.CreateDefaultConfig().(*clickhouseexporter.Config).QueueSettings
	config.QueueSettings.Get().WaitForResult = true // so that the test gets errors
	e, err := factory.CreateTraces(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.WithoutCancel(t.Context())) })
	return e
}

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

// spans are a hundred with all that a span can have, some of them late.
func spans(ids *idgen.Generator, first uint64) ptrace.Traces {
	all := ptrace.NewTraces()
	for i := range uint64(5) {
		batch(ids, first+20*i).ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		scope := all.ResourceSpans().At(int(i)).ScopeSpans().At(0)
		all.ResourceSpans().At(int(i)).Resource().Attributes().PutStr("host.name",
			fmt.Sprint("h", i))
		scope.Scope().SetName("test")
		scope.Scope().SetVersion("1")
		for k := range scope.Spans().Len() {
			s := scope.Spans().At(k)
			s.SetParentSpanID([8]byte{byte(k)})
			s.SetKind(ptrace.SpanKind(k % 6))
			s.TraceState().FromRaw("a=b")
			s.Attributes().PutInt("user.id", int64(k))
			s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(k))
			if k%7 == 0 {
				s.SetStartTimestamp(s.StartTimestamp() + pcommon.Timestamp(90*time.Minute))
				s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(time.Second))
				s.Status().SetCode(ptrace.StatusCodeError)
				s.Status().SetMessage("out of stock")
				event, link := s.Events().AppendEmpty(), s.Links().AppendEmpty()
				event.SetName("exception")
				event.SetTimestamp(s.StartTimestamp())
				event.Attributes().PutStr("exception.message", "out of stock")
				link.SetTraceID(s.TraceID())
				link.SetSpanID(s.SpanID())
				link.TraceState().FromRaw("c=d")
				link.Attributes().PutBool("old", true)
			}
		}
	}
	return all
}

// With both configurations the exporter writes the same, also where it may create its schema: it
// adds nothing to our tables, nor Create another lookup table to its own. What the queries find in
// such tables is tested in integration/clickhouse.
func TestWriter(t *testing.T) {
	ids := idgen.New()
	sent := []ptrace.Traces{spans(ids, 1), spans(ids, 101)}
	var stored [][][]string
	for file, overlay := range map[string]bool{"owned.yaml": false, "overlay.yaml": true} {
		e := database(t)
		if got := exporterConfig(t, examples+file).CreateSchema; got != overlay {
			t.Errorf("%s: create_schema is %t", file, got) // false for the table that is ours
		}
		s := clickhouse.Schema{Database: e.Database(), Overlay: overlay}
		if overlay {
			collector(t, examples+file) // creates its tables
		}
		statements, err := s.Statements()
		e.Run(t, statements, err)
		const tables = "SELECT name, engine, create_table_query FROM system.tables " +
			"WHERE database = currentDatabase() ORDER BY name"
		before := fmt.Sprint(e.Rows(t, tables))
		for i, file := range []string{file, "overlay.yaml"} {
			traces := ptrace.NewTraces()
			sent[i].CopyTo(traces)
			if err := collector(t, examples+file).ConsumeTraces(t.Context(), traces); err != nil {
				t.Fatal(err)
			}
		}
		if after := fmt.Sprint(e.Rows(t, tables)); after != before {
			t.Errorf("%s: the exporter changed\n%s\nto\n%s", file, before, after)
		}
		rows := e.Rows(t, "SELECT * FROM otel_traces ORDER BY SpanId")
		stored = append(stored, rows)
		for column := range rows[0] {
			if !slices.ContainsFunc(rows, func(row []string) bool {
				return row[column] != "" && row[column] != "[]" && row[column] != "{}"
			}) {
				t.Errorf("%s: nothing is in column %d", file, column+1)
			}
		}
		if len(rows) != 200 || rows[0][2] != "0000000000000001" {
			t.Errorf("%s: %d spans, want 200; the first is %q", file, len(rows), rows[0])
		}
	}
	if !slices.EqualFunc(stored[0], stored[1], slices.Equal) {
		t.Errorf("the two tables differ:\n%q\n%q", stored[0], stored[1])
	}
}

// TestAdoptUnderInserts adopts the table of the Collector's exporter, goes back, adopts it again
// and finishes, many times over, while three exporters store spans and restart: each span is stored
// once.
func TestAdoptUnderInserts(t *testing.T) {
	e := database(t)
	db, err := sql.Open("clickhouse", e.DSN())
	if err != nil {
		t.Fatal(err)
	}
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
					// a restart, which creates the schema
					exporters[i] = collector(t, examples+"overlay.yaml")
				}
				spans := batch(ids, next.Add(20)-20)
				if err := exporters[i].ConsumeTraces(t.Context(), spans); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	type operation func(clickhouse.Adoption, context.Context, *sql.DB) (clickhouse.Plan, error)
	adopts := func(operation operation) {
		t.Helper()
		// this engine shows no policies
		plan, err := operation(clickhouse.Adoption{SkipAccess: true}, t.Context(), db)
		if err == nil {
			err = plan.Run(t.Context(), db, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		// each state gets inserts
		for target := batches.Load() + 3; batches.Load() < target && !t.Failed(); {
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
	const distinct = "SELECT toString(uniqExact(TraceId)) FROM otel_traces_trace_id_ts"
	if traces := e.Rows(t, distinct)[0][0]; traces != fmt.Sprint(len(stored)/2) {
		t.Errorf("%s traces of %d are in the lookup table", traces, len(stored)/2)
	}
	t.Logf("%d exchanges, %d spans, a materialized view has %s of them", 2*rounds+1, len(stored),
		e.Rows(t, "SELECT toString(count()) FROM rollup")[0][0])
	create := e.Rows(t, "SELECT create_table_query FROM system.tables "+
		"WHERE database = currentDatabase() AND name = 'otel_traces'")[0][0]
	if !strings.Contains(create, "TTL toDateTime(Timestamp) + toIntervalDay(30)") ||
		!strings.Contains(create, "ORDER BY (toStartOfInterval(Timestamp") {
		t.Errorf("the table is %s", create)
	}
}
