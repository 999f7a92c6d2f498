package collector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
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

// row is what a query shows of a span.
type row struct {
	id, parent, trace, service, name, status, kind string
	message, host                                  string
	start, duration                                int64
	attributes                                     map[string]string
	events, links                                  uint64
}

func rowOf(s tracetest.SpanStub) row {
	r := row{
		id: s.SpanContext.SpanID().String(), trace: s.SpanContext.TraceID().String(), name: s.Name, kind: map[trace.SpanKind]string{
			trace.SpanKindServer: "Server", trace.SpanKindClient: "Client", trace.SpanKindInternal: "Internal"}[s.SpanKind],
		status: map[codes.Code]string{codes.Unset: "Unset", codes.Error: "Error"}[s.Status.Code],
		start:  s.StartTime.UnixNano(), duration: s.EndTime.UnixNano() - s.StartTime.UnixNano(),
		message: s.Status.Description, attributes: map[string]string{}, events: uint64(len(s.Events)), links: uint64(len(s.Links)),
	}
	if s.Parent.SpanID().IsValid() {
		r.parent = s.Parent.SpanID().String()
	}
	for _, a := range s.Resource.Attributes() {
		switch a.Key {
		case "service.name":
			r.service = a.Value.AsString()
		case "host.name":
			r.host = a.Value.AsString()
		}
	}
	for _, a := range s.Attributes {
		r.attributes[string(a.Key)] = a.Value.String()
	}
	return r
}

// stored runs a query for whole spans and returns them by ID.
func stored(t *testing.T, e *servers.Engine, q clickhouse.Query, err error) map[string]row {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	options, err := chgo.ParseDSN(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	db := chgo.OpenDB(options)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), `SELECT SpanId, ParentSpanId, TraceId, ServiceName, SpanName, StatusCode, SpanKind, StatusMessage,
		ResourceAttributes['host.name'], toUnixTimestamp64Nano(Timestamp), toInt64(Duration), CAST(SpanAttributes, 'Map(String, String)'),
		length(`+"`Events.Name`), length(`Links.TraceId`) FROM ("+q.SQL+")", q.Args()...)
	if err != nil {
		t.Fatalf("%s: %v", q.SQL, err)
	}
	defer func() { _ = rows.Close() }()
	found := map[string]row{}
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.parent, &r.trace, &r.service, &r.name, &r.status, &r.kind, &r.message,
			&r.host, &r.start, &r.duration, &r.attributes, &r.events, &r.links); err != nil {
			t.Fatal(err)
		}
		if _, twice := found[r.id]; twice {
			t.Errorf("span %s twice", r.id)
		}
		found[r.id] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

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
			query := func(sql string) string {
				t.Helper()
				r, err := e.Query(t.Context(), sql)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(r.Rows)
			}
			run := func(statements []string, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, statement := range statements {
					query(statement)
				}
			}
			s := clickhouse.Schema{Database: e.Database(), Layout: c.layout}
			if c.layout == clickhouse.Overlay {
				collector(t, examples+c.file) // creates its tables
				run(s.Statements())
				run(s.DropLookup())
			} else {
				run(s.Statements())
			}
			const tables = "SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name"
			before := query(tables)
			sent := append(send(t, collector(t, examples+c.file)), send(t, collector(t, examples+"overlay.yaml"))...)
			if after := query(tables); after != before {
				t.Errorf("the exporter changed\n%s\nto\n%s", before, after)
			}

			want, ids := map[string]row{}, map[[16]byte]bool{}
			for _, span := range sent {
				r := rowOf(span)
				want[r.id], ids[span.SpanContext.TraceID()] = r, true
			}
			q, err := clickhouse.TracesEverywhere(s, slices.Collect(maps.Keys(ids)))
			got := stored(t, e, q, err)
			if len(sent) != 252 || len(got) != len(sent) {
				t.Errorf("%d spans stored of %d, want 252", len(got), len(sent))
			}
			for id, w := range want {
				if g := got[id]; !reflect.DeepEqual(g, w) {
					t.Fatalf("stored %+v, sent %+v", g, w)
				}
			}
		})
	}
}
