package collector

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
)

// collector starts the Collector's exporter with the configuration of a file.
func collector(t *testing.T, file string) exporter.Traces {
	t.Helper()
	config := exporterConfig(t, file)
	config.QueueSettings = clickhouseexporter.NewFactory().CreateDefaultConfig().(*clickhouseexporter.Config).QueueSettings
	config.QueueSettings.Get().WaitForResult = true // so that the test gets errors
	factory := clickhouseexporter.NewFactory()
	e, err := factory.CreateTraces(t.Context(), exporter.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), Resource: pcommon.NewResource(),
		},
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), noExtensions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown(context.WithoutCancel(t.Context())) })
	return e
}

type noExtensions struct{}

func (noExtensions) GetExtensions() map[component.ID]component.Component { return nil }

// wire is an OTLP client that passes spans to the Collector's exporter.
type wire struct{ exporter.Traces }

func (wire) Start(context.Context) error { return nil }
func (wire) Stop(context.Context) error  { return nil }

func (w wire) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	message, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(message)
	if err != nil {
		return err
	}
	return w.ConsumeTraces(ctx, traces)
}

// spans are a hundred with all that a span can have, some of them late.
func spans(ids *idgen.Generator, first uint64) ptrace.Traces {
	all := ptrace.NewTraces()
	for i := range uint64(5) {
		batch(ids, first+20*i).ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		scope := all.ResourceSpans().At(int(i)).ScopeSpans().At(0)
		all.ResourceSpans().At(int(i)).Resource().Attributes().PutStr("host.name", fmt.Sprint("h", i))
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

// With both configurations the exporter writes the same, also where it may create its schema: it adds
// nothing to our table, nor to its own without the lookup table. What the queries find in such
// tables is tested in integration/clickhouse.
func TestWriter(t *testing.T) {
	ids := idgen.New()
	sent := []ptrace.Traces{spans(ids, 1), spans(ids, 101)}
	var stored [][][]string
	for file, layout := range map[string]clickhouse.Layout{"owned.yaml": clickhouse.ServiceFirst, "overlay.yaml": clickhouse.Overlay} {
		e := servers.ClickHouseForTest(t)
		t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
		t.Setenv("CLICKHOUSE_DATABASE", e.Database())
		s := clickhouse.Schema{Database: e.Database(), Layout: layout}
		if layout == clickhouse.Overlay {
			collector(t, examples+file) // creates its tables
			drop, err := s.DropLookup()
			e.Run(t, drop, err)
		}
		statements, err := s.Statements()
		e.Run(t, statements, err)
		const tables = "SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name"
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
			if slices.IndexFunc(rows, func(row []string) bool { return row[column] != "" && row[column] != "[]" && row[column] != "{}" }) < 0 {
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
