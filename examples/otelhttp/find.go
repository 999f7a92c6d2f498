package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/embedded"
)

// finder looks traces up in the Collector's table.
type finder struct {
	engine *embedded.Engine
	ids    *source
	conn   driver.Conn
	server string // what it is
}

func newFinder(engine *embedded.Engine, ids *source) (*finder, error) {
	options, err := clickhouse.ParseDSN(engine.DSN())
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, err
	}
	version, err := conn.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", options.Addr[0], err)
	}
	return &finder{engine: engine, ids: ids, conn: conn, server: version.Version.String() + " at " + options.Addr[0]}, nil
}

func (f *finder) close() error { return f.conn.Close() }

// summaries are of all traces in the table.
func (f *finder) summaries(ctx context.Context) (all []summary, err error) {
	const sql = `SELECT TraceId, count() AS Spans, uniqExact(SpanId) AS Distinct, uniqExact(ServiceName) AS Services,
		argMin(ParentSpanId, (ServiceName != 'edge', Timestamp)) AS Parent
		FROM otel_traces GROUP BY TraceId`
	return all, f.conn.Select(ctx, &all, sql)
}

// span is a row of the Collector's table.
type span struct {
	Timestamp     time.Time
	SpanID        string `ch:"SpanId"`
	ParentSpanID  string `ch:"ParentSpanId"`
	SpanName      string
	SpanKind      string
	ServiceName   string
	Duration      uint64 // nanoseconds
	StatusCode    string
	StatusMessage string
}

// found is a trace and what finding it cost.
type found struct {
	id       trace.TraceID
	decoded  string // the low half, for people
	spans    []span
	from, to time.Time // the window; zero if all of the table was searched
	windowed embedded.Granules
	whole    embedded.Granules // without a window
}

// A trace's spans begin after its ID is made, but clocks differ and some
// traces are long.
const (
	before = time.Minute
	after  = time.Hour
)

// trace searches in the window that the ID's time gives, and if nothing is
// there, as for IDs that are not ours, everywhere.
func (f *finder) trace(ctx context.Context, id trace.TraceID) (t found, err error) {
	t.id, t.decoded = id, f.ids.decode(id)
	t.from, t.to = idgen.Time(id).Add(-before), idgen.Time(id).Add(after)
	everywhere := fmt.Sprintf(`SELECT Timestamp, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage
		FROM otel_traces WHERE TraceId = '%s'`, id)
	windowed := fmt.Sprintf("%s AND Timestamp BETWEEN fromUnixTimestamp64Milli(%d) AND fromUnixTimestamp64Milli(%d)",
		everywhere, t.from.UnixMilli(), t.to.UnixMilli())
	if t.windowed, err = f.engine.Granules(ctx, windowed); err != nil {
		return t, err
	}
	if t.whole, err = f.engine.Granules(ctx, everywhere); err != nil {
		return t, err
	}
	if err := f.conn.Select(ctx, &t.spans, windowed); err != nil || len(t.spans) > 0 {
		return t, err
	}
	t.from, t.to = time.Time{}, time.Time{}
	if err := f.conn.Select(ctx, &t.spans, everywhere); err != nil {
		return t, err
	}
	if len(t.spans) == 0 {
		return t, fmt.Errorf("there is no trace %s", id)
	}
	return t, nil
}

// handler shows a trace to curl.
func (f *finder) handler(spans *pipeline) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := trace.TraceIDFromHex(r.PathValue("id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := spans.flush(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		t, err := f.trace(r.Context(), id)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		newScreen(w).waterfall(t)
	})
}
