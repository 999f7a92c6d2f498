package collector

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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

// key distinguishes spans by trace, begin and end, service and name, because spans found by a
// search have no IDs.
func (r row) key() string {
	return fmt.Sprint(r.trace, r.start, r.duration, r.service, r.name, r.id)
}

// ask runs a query and returns its rows by key. wide means that the query returns the columns of
// the whole table, not those of a search.
func ask(t *testing.T, db *sql.DB, wide bool, q clickhouse.Query, err error) map[string]row {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	columns := "TraceId, ServiceName, SpanName, StatusCode, SpanKind, toUnixTimestamp64Nano(Timestamp), Duration"
	if wide {
		columns += ", SpanId, ParentSpanId, StatusMessage, ResourceAttributes['host.name'], CAST(SpanAttributes, 'Map(String, String)'), length(`Events.Name`), length(`Links.TraceId`)"
	}
	settings, text := "", q.SQL
	if at := strings.LastIndex(text, "\nSETTINGS "); at > 0 {
		text, settings = text[:at], text[at:]
	}
	rows, err := db.QueryContext(t.Context(), "SELECT "+columns+" FROM (\n"+text+"\n)"+settings, q.Args()...)
	if err != nil {
		t.Fatalf("%s: %v", q.SQL, err)
	}
	defer func() { _ = rows.Close() }()
	found := map[string]row{}
	for rows.Next() {
		var r row
		var duration uint64
		into := []any{&r.trace, &r.service, &r.name, &r.status, &r.kind, &r.start, &duration}
		if wide {
			into = append(into, &r.id, &r.parent, &r.message, &r.host, &r.attributes, &r.events, &r.links)
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		r.duration = int64(duration)
		if _, twice := found[r.key()]; twice {
			t.Errorf("span %s twice", r.key())
		}
		found[r.key()] = r
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// want returns the rows that a query should return.
func want(sent tracetest.SpanStubs, wide bool, keep func(row) bool) map[string]row {
	rows := map[string]row{}
	for _, s := range sent {
		r := rowOf(s)
		if !keep(r) {
			continue
		}
		if !wide {
			r.id, r.parent, r.message, r.host, r.attributes, r.events, r.links = "", "", "", "", nil, 0, 0
		}
		rows[r.key()] = r
	}
	return rows
}

func TestWriterAndQueries(t *testing.T) {
	for _, c := range []struct {
		file   string
		layout clickhouse.Layout
	}{{examples + "owned.yaml", clickhouse.ServiceFirst}, {examples + "overlay.yaml", clickhouse.Overlay}} {
		t.Run(c.file, func(t *testing.T) {
			e := servers.ClickHouseForTest(t)
			t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
			t.Setenv("CLICKHOUSE_DATABASE", e.Database())
			options, err := chgo.ParseDSN(e.DSN())
			if err != nil {
				t.Fatal(err)
			}
			db := chgo.OpenDB(options)
			defer func() { _ = db.Close() }()
			s := clickhouse.Schema{Database: e.Database(), Layout: c.layout}
			if c.layout == clickhouse.ServiceFirst {
				if err := s.Create(t.Context(), db); err != nil {
					t.Fatal(err)
				}
			}
			writer := collector(t, c.file)
			if c.layout == clickhouse.Overlay {
				if err := s.Create(t.Context(), db); err != nil {
					t.Fatal(err)
				}
				drop, err := s.DropLookup()
				if err != nil {
					t.Fatal(err)
				}
				for _, statement := range drop {
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			check(t, s, db, send(t, writer))
		})
	}
}

func check(t *testing.T, s clickhouse.Schema, db *sql.DB, sent tracetest.SpanStubs) {
	t.Helper()
	if len(sent) != 126 {
		t.Fatalf("%d spans sent", len(sent))
	}
	same := func(what string, got, want map[string]row) {
		t.Helper()
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d spans, want %d", what, len(got), len(want))
			for id, w := range want {
				if g := got[id]; !reflect.DeepEqual(g, w) {
					t.Fatalf("%s: stored %+v, sent %+v", what, g, w)
				}
			}
		}
	}
	traces := map[trace.TraceID]bool{}
	for _, span := range sent {
		traces[span.SpanContext.TraceID()] = true
	}
	var ids [][16]byte
	for id := range traces {
		of := func(r row) bool { return r.trace == id.String() }
		same("Trace", whole(t, s, db, id), want(sent, true, of))
		q, err := clickhouse.TracesEverywhere(s, [][16]byte{id})
		same("TracesEverywhere", ask(t, db, true, q, err), want(sent, true, of))
		ids = append(ids, id)
	}
	all := func(row) bool { return true }
	same("Traces", whole(t, s, db, ids...), want(sent, true, all))

	first, last := sent[0].StartTime, sent[0].StartTime
	for _, span := range sent {
		if span.StartTime.Before(first) {
			first = span.StartTime
		}
		if span.StartTime.After(last) {
			last = span.StartTime
		}
	}
	to := last.Add(1)
	q, err := s.Spans(first, to)
	same("Spans", ask(t, db, true, q, err), want(sent, true, all))
	for what, c := range map[string]struct {
		search clickhouse.Search
		keep   func(row) bool
	}{
		"service":   {clickhouse.Search{Service: "orders"}, func(r row) bool { return r.service == "orders" }},
		"name":      {clickhouse.Search{Service: "orders", Name: "late"}, func(r row) bool { return r.name == "late" }},
		"attribute": {clickhouse.Search{Attributes: map[string]string{"user.id": "7"}}, func(r row) bool { return r.attributes["user.id"] == "7" }},
		"host":      {clickhouse.Search{ResourceAttributes: map[string]string{"host.name": "h-edge"}}, func(r row) bool { return r.service == "edge" }},
		"duration":  {clickhouse.Search{MinDuration: time.Hour}, func(r row) bool { return r.duration >= int64(time.Hour) }},
		"errors":    {clickhouse.Search{Errors: true}, func(r row) bool { return r.status == "Error" }},
	} {
		c.search.From, c.search.To, c.search.Limit = first, to, 1000
		q, err := s.Search(c.search)
		same("Search "+what, ask(t, db, false, q, err), want(sent, false, c.keep))
	}
	now := time.Now()
	q, err = s.SpansOfTraces(now.Add(-time.Hour), now.Add(time.Hour))
	same("SpansOfTraces", ask(t, db, true, q, err), want(sent, true, func(r row) bool { return r.trace[:2] != "fe" }))
	newest(t, s, db, traces)
}

// whole finds the spans of traces and queries again for traces that may be incomplete.
func whole(t *testing.T, s clickhouse.Schema, db *sql.DB, ids ...[16]byte) map[string]row {
	t.Helper()
	q, err := clickhouse.Traces(s, ids)
	found := ask(t, db, true, q, err)
	var spans []clickhouse.Span
	for _, r := range found {
		id, err := trace.TraceIDFromHex(r.trace)
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, clickhouse.Span{TraceID: id, SpanID: r.id, ParentSpanID: r.parent,
			Start: time.Unix(0, r.start), Duration: time.Duration(r.duration)})
	}
	if again := clickhouse.Incomplete(s, ids, spans); len(again) > 0 {
		q, err := clickhouse.TracesEverywhere(s, again)
		maps.Copy(found, ask(t, db, true, q, err))
	}
	return found
}

// newest pages through all traces of our generator.
func newest(t *testing.T, s clickhouse.Schema, db *sql.DB, traces map[trace.TraceID]bool) {
	t.Helper()
	var before trace.TraceID
	var found []string
	now := time.Now()
	for {
		q, err := s.Newest(now.Add(-time.Hour), now.Add(time.Hour), before, 7)
		page := newestPage(t, db, q, err)
		if len(page) == 0 {
			break
		}
		found = append(found, page...)
		if before, err = trace.TraceIDFromHex(found[len(found)-1]); err != nil {
			t.Fatal(err)
		}
	}
	var ours []string
	for id := range maps.Keys(traces) {
		if id[0] != 0xfe {
			ours = append(ours, id.String())
		}
	}
	slices.Sort(ours)
	slices.Reverse(ours)
	if !reflect.DeepEqual(found, ours) {
		t.Errorf("newest: %d traces, want %d", len(found), len(ours))
	}
}

// newestPage returns the IDs of a page, and checks the page's other columns.
func newestPage(t *testing.T, db *sql.DB, q clickhouse.Query, err error) (page []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), q.SQL, q.Args()...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, service, name string
		var start, end time.Time
		var spans, failed uint64
		if err := rows.Scan(&id, &start, &end, &spans, &failed, &service, &name); err != nil {
			t.Fatal(err)
		}
		if service != "edge" || name != "GET /checkout" || spans < 2 || !end.After(start) {
			t.Errorf("%s: %s %s, %d spans, %v to %v", id, service, name, spans, start, end)
		}
		page = append(page, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return page
}

// With create_schema: true the exporter adds nothing to our table, nor to its own without the
// lookup table, and writes into it.
func TestExporterStartsAgain(t *testing.T) {
	for name, layout := range map[string]clickhouse.Layout{"owned": clickhouse.ServiceFirst, "overlay": clickhouse.Overlay} {
		t.Run(name, func(t *testing.T) {
			e := servers.ClickHouseForTest(t)
			t.Setenv("CLICKHOUSE_ENDPOINT", e.DSN())
			t.Setenv("CLICKHOUSE_DATABASE", e.Database())
			s := clickhouse.Schema{Database: e.Database(), Layout: layout}
			run := func(statements []string, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, statement := range statements {
					if _, err := e.Query(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
			}
			if layout == clickhouse.Overlay {
				collector(t, examples+"overlay.yaml") // creates its tables
				run(s.Statements())
				run(s.DropLookup())
			} else {
				run(s.Statements())
			}
			tables := func() string {
				r, err := e.Query(t.Context(), "SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name")
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprint(r.Rows)
			}
			before := tables()
			writer := collector(t, examples+"overlay.yaml") // create_schema: true
			sent := send(t, writer)
			if after := tables(); after != before {
				t.Errorf("the exporter changed\n%s\nto\n%s", before, after)
			}
			r, err := e.Query(t.Context(), "SELECT count() FROM otel_traces")
			if err != nil || r.Rows[0][0] != fmt.Sprint(len(sent)) {
				t.Errorf("%v spans of %d (%v)", r.Rows, len(sent), err)
			}
		})
	}
}
