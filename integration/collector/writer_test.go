package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
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

// send makes traces with the SDK and our generator, some late and one with a
// foreign ID, and returns the spans as the SDK ended them.
func send(t *testing.T, to exporter.Traces) tracetest.SpanStubs {
	t.Helper()
	otlp, err := otlptrace.New(t.Context(), wire{to})
	if err != nil {
		t.Fatal(err)
	}
	seen := tracetest.NewInMemoryExporter()
	ids := idgen.New()
	var providers []*sdktrace.TracerProvider
	for _, service := range []string{"edge", "orders"} {
		providers = append(providers, sdktrace.NewTracerProvider(
			sdktrace.WithIDGenerator(ids),
			sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service), attribute.String("host.name", "h-"+service))),
			sdktrace.WithSyncer(seen),
			sdktrace.WithBatcher(otlp)))
	}
	foreign := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xfe, 15: 1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true}))
	for i := range 60 {
		ctx := t.Context()
		if i == 0 {
			ctx = foreign
		}
		edge, orders := providers[0].Tracer("test", trace.WithInstrumentationVersion("1")), providers[1].Tracer("test")
		ctx, root := edge.Start(ctx, "GET /checkout", trace.WithSpanKind(trace.SpanKindServer))
		_, child := orders.Start(ctx, "reserve", trace.WithAttributes(attribute.Int("user.id", i)), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithLinks(trace.Link{SpanContext: trace.SpanContextFromContext(foreign)}))
		if i%7 == 0 {
			child.RecordError(errors.New("out of stock"))
			child.SetStatus(codes.Error, "out of stock")
		}
		child.End()
		if i%10 == 5 { // a child that begins after an hour, and a root that lasts two hours
			later := time.Now().Add(90 * time.Minute)
			_, late := orders.Start(ctx, "late", trace.WithTimestamp(later))
			late.End(trace.WithTimestamp(later.Add(time.Second)))
			root.End(trace.WithTimestamp(later.Add(time.Minute)))
		} else {
			root.End()
		}
	}
	for _, p := range providers {
		if err := p.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	spans := seen.GetSpans() // Shutdown discards them
	for _, p := range providers {
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return spans
}

// rowOf is what a query for these columns shows of a span.
func rowOf(s tracetest.SpanStub) string {
	service, _ := s.Resource.Set().Value("service.name")
	host, _ := s.Resource.Set().Value("host.name")
	attributes := attribute.NewSet(s.Attributes...)
	user, _ := attributes.Value("user.id")
	return fmt.Sprint([]any{s.SpanContext.SpanID(), s.Parent.SpanID(), s.SpanContext.TraceID(), service.AsString(), host.AsString(), s.Name, s.SpanKind,
		s.Status.Code, s.Status.Description, s.StartTime.UnixNano(), s.EndTime.UnixNano() - s.StartTime.UnixNano(),
		attributes.Len(), user.String(), len(s.Events), len(s.Links)})
}

const columns = `SpanId, if(ParentSpanId = '', repeat('0', 16), ParentSpanId), TraceId, ServiceName, ResourceAttributes['host.name'], SpanName,
	lower(SpanKind), StatusCode, StatusMessage, toUnixTimestamp64Nano(Timestamp), toInt64(Duration),
	length(mapKeys(CAST(SpanAttributes, 'Map(String, String)'))), CAST(SpanAttributes, 'Map(String, String)')['user.id'],
	length(` + "`Events.Name`), length(`Links.TraceId`)"

// With both configurations the exporter writes what was sent, also where the exporter may create its
// schema: it adds nothing to our table, nor to its own without the lookup table. What the queries
// find in such tables is tested in integration/clickhouse.
func TestWriter(t *testing.T) {
	for _, c := range []struct {
		file   string
		layout clickhouse.Layout
	}{{"owned.yaml", clickhouse.ServiceFirst}, {"overlay.yaml", clickhouse.Overlay}} {
		t.Run(c.file, func(t *testing.T) {
			e := servers.ClickHouseForTest(t)
			t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
			t.Setenv("CLICKHOUSE_DATABASE", e.Database())
			s := clickhouse.Schema{Database: e.Database(), Layout: c.layout}
			if c.layout == clickhouse.Overlay {
				collector(t, examples+c.file) // creates its tables
				drop, err := s.DropLookup()
				e.Run(t, drop, err)
			}
			statements, err := s.Statements()
			e.Run(t, statements, err)
			const tables = "SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name"
			before := fmt.Sprint(e.Rows(t, tables))
			sent := append(send(t, collector(t, examples+c.file)), send(t, collector(t, examples+"overlay.yaml"))...)
			if after := fmt.Sprint(e.Rows(t, tables)); after != before {
				t.Errorf("the exporter changed\n%s\nto\n%s", before, after)
			}

			var want, got []string
			for _, span := range sent {
				want = append(want, rowOf(span))
			}
			for _, row := range e.Rows(t, "SELECT concat('[', concatWithSeparator(' ', "+columns+"), ']') FROM otel_traces") {
				got = append(got, row[0])
			}
			slices.Sort(want)
			if slices.Sort(got); len(sent) != 252 || !slices.Equal(got, want) {
				t.Errorf("%d spans of %d, want 252; stored %s, sent %s", len(got), len(want), got, want)
			}
		})
	}
}
