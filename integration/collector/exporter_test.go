// Package collector tests the configurations in examples/collector: it parses both with the
// Collector's own code, and sends spans of the SDKs for Go and JavaScript through its ClickHouse
// exporter into the tables.
package collector

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
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

// must returns a value that a call returned without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// exporterConfig reads a configuration as the Collector does, and returns the exporter's part.
func exporterConfig(t *testing.T, file string) *clickhouseexporter.Config {
	t.Helper()
	otlp, batch := otlpreceiver.NewFactory(), batchprocessor.NewFactory()
	clickhouse := clickhouseexporter.NewFactory()
	provider := must(otelcol.NewConfigProvider(otelcol.ConfigProviderSettings{
		ResolverSettings: confmap.ResolverSettings{URIs: []string{"file:" + file},
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(),
				envprovider.NewFactory()}}}))
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
	return config.Exporters[component.MustNewID("clickhouse")].(*clickhouseexporter.Config)
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
	e := must(factory.CreateTraces(t.Context(), exportertest.NewNopSettings(factory.Type()),
		config))
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

// With both configurations the exporter writes the same rows, even if it may create its schema: it
// adds nothing to our tables.
// integration/clickhouse tests the queries on such tables.
func TestWriter(t *testing.T) {
	ids := idgen.New()
	sent := []ptrace.Traces{spans(ids, 1), spans(ids, 101)}
	var stored [][][]string
	for file, overlay := range map[string]bool{"owned.yaml": false, "overlay.yaml": true} {
		e := database(t)
		if got := exporterConfig(t, examples+file).CreateSchema; got != overlay {
			t.Errorf("%s: create_schema is %t", file, got) // false for the table that is ours
		}
		if overlay {
			collector(t, examples+file) // creates its tables
		} else {
			statements, err := clickhouse.Schema{Database: e.Database()}.Statements()
			e.Run(t, statements, err)
		}
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
