package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/otel/trace"

	traces "github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// finder queries traces and measures the queries.
type finder struct {
	engine *servers.Engine
	ring   *randflake.Keyring
	conn   driver.Conn
	server string // its description

	since     time.Time // the end of the history
	atStart   []costs   // measured before serving starts
	merged    bool      // parts were merged before serving started
	measuring sync.Mutex
}

func newFinder(engine *servers.Engine, ring *randflake.Keyring) (*finder, error) {
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
	return &finder{engine: engine, ring: ring, conn: conn, server: version.Version.String() + " at " + options.Addr[0]}, nil
}

func (f *finder) close() error { return f.conn.Close() }

// summaries returns summaries of all traces in the table except the history.
func (f *finder) summaries(ctx context.Context) (all []summary, err error) {
	const sql = `SELECT TraceId, count() AS Spans, uniqExact(SpanId) AS Distinct, uniqExact(ServiceName) AS Services,
		argMin(ParentSpanId, (ServiceName != 'edge', Timestamp)) AS Parent
		FROM otel_traces GROUP BY TraceId HAVING toUnixTimestamp64Milli(min(Timestamp)) >= {since:Int64}`
	return all, f.conn.Select(ctx, &all, sql, clickhouse.Named("since", strconv.FormatInt(f.since.UnixMilli(), 10)))
}

// span is a row of the table.
type span struct {
	Timestamp     time.Time
	TraceID       string `ch:"TraceId"`
	SpanID        string `ch:"SpanId"`
	ParentSpanID  string `ch:"ParentSpanId"`
	SpanName      string
	SpanKind      string
	ServiceName   string
	Duration      uint64 // nanoseconds
	StatusCode    string
	StatusMessage string

	TraceState, ScopeName, ScopeVersion string
	SpanAttributes, ResourceAttributes  map[string]string

	EventTimes      []time.Time         `ch:"Events.Timestamp"`
	EventNames      []string            `ch:"Events.Name"`
	EventAttributes []map[string]string `ch:"Events.Attributes"`
	LinkTraceIDs    []string            `ch:"Links.TraceId"`
	LinkSpanIDs     []string            `ch:"Links.SpanId"`
	LinkAttributes  []map[string]string `ch:"Links.Attributes"`
}

// Took is how long the span lasted.
func (s span) Took() time.Duration { return time.Duration(s.Duration) }

// Failed reports whether the status is an error, as any version of the exporter writes it.
func (s span) Failed() bool { return s.StatusCode == "Error" || s.StatusCode == "STATUS_CODE_ERROR" }

// allColumns are the columns of span.
const allColumns = `Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage,
	TraceState, ScopeName, ScopeVersion, SpanAttributes, ResourceAttributes,
	Events.Timestamp, Events.Name, Events.Attributes, Links.TraceId, Links.SpanId, Links.Attributes`

// found is a trace and what finding it cost.
type found struct {
	drawing
	ID       trace.TraceID
	Decoded  string // a description of the low half
	Dated    bool   // the ID's time is near the spans', as in our IDs
	Costs    []costs
	Measured string // the conditions of the measurement
}

// Made is the time in the ID.
func (t found) Made() time.Time { return traceid.Time(t.ID) }

// Sequence is the number in the ID.
func (t found) Sequence() uint32 { return traceid.Sequence(t.ID) }

// Lag is how long after its ID the trace began.
func (t found) Lag() time.Duration { return t.Start.Sub(t.Made()) }

// Errors counts the spans with an error.
func (t found) Errors() (n int) {
	for _, l := range t.Lines {
		if l.Failed() {
			n++
		}
	}
	return n
}

// Services returns the services of the trace, sorted.
func (t found) Services() []string {
	names := make([]string, len(t.Lines))
	for i, l := range t.Lines {
		names[i] = l.ServiceName
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

var errNoTrace = errors.New("found no trace")

// trace finds a trace by its ID, whether our generator made the ID or not.
func (f *finder) trace(ctx context.Context, id trace.TraceID) (t found, err error) {
	t.ID, t.Decoded = id, decode(f.ring, id)
	const lookup = "SELECT " + allColumns + "\n\tFROM %s WHERE TraceId = '%s' ORDER BY Timestamp"
	var spans []span
	if err := f.conn.Select(ctx, &spans, fmt.Sprintf(lookup, "otel_traces", id)); err != nil {
		return t, err
	}
	if len(spans) == 0 {
		return t, fmt.Errorf("%w %s", errNoTrace, id)
	}
	t.drawing = draw(spans)
	t.Dated = traceid.Plausible(id, t.Start, time.Hour, time.Minute)
	one, err := f.measure(ctx, "One trace by its ID", fmt.Sprintf(lookup, "%s", id))
	if err != nil {
		return t, err
	}
	t.Costs = append([]costs{one}, f.atStart...)
	t.Measured, err = f.conditions(ctx)
	return t, err
}

// compare copies each span into the exporter's own table, to measure the same look-up there. Only
// a demonstration needs it.
func (f *finder) compare(ctx context.Context) error {
	err := f.conn.Exec(ctx, "CREATE MATERIALIZED VIEW "+exporterTable+"_copy TO "+exporterTable+" AS SELECT * FROM otel_traces")
	if err != nil {
		return fmt.Errorf("ClickHouse: prepare: %w", err)
	}
	return nil
}

// table is sorted by trace ID.
var table = traces.Schema{Table: "otel_traces", Layout: traces.TraceFirst}

// prepare creates the table that the exporter writes into, and the functions.
func (f *finder) prepare(ctx context.Context) error {
	statements, err := table.Statements()
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if err := f.conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("ClickHouse: prepare: %w", err)
		}
	}
	return nil
}

// listed is a trace in a list.
type listed struct {
	TraceID       string `ch:"TraceId"`
	Start, End    time.Time
	Spans, Errors uint64
	Service, Name string // of the root, or of the first span if there is no root
}

// Took is how long the trace lasted.
func (l listed) Took() time.Duration { return l.End.Sub(l.Start) }

// Made is the time in the ID.
func (l listed) Made() time.Time {
	id, _ := trace.TraceIDFromHex(l.TraceID) // the list shows valid IDs only
	return traceid.Time(id)
}

// newest lists up to n traces in descending order of their IDs, only those below before unless
// before is zero, and reports whether there are more. It looks further back only if it finds too
// few.
func (f *finder) newest(ctx context.Context, before trace.TraceID, n int) (list []listed, more bool, err error) {
	epoch := time.UnixMilli(traceid.EpochMillis)
	to := time.Now().Add(time.Minute) // other clocks may be ahead
	if before.IsValid() {
		to = traceid.Time(before).Add(time.Millisecond)
	}
	for from := range traces.Widening(epoch, to) {
		query, err := table.Newest(from, to, before, n+1)
		if err != nil {
			return nil, false, err
		}
		list = nil
		if err := f.conn.Select(ctx, &list, query.SQL, arguments(query)...); err != nil {
			return nil, false, err
		}
		if len(list) > n {
			return list[:n], true, nil
		}
	}
	return list, false, nil
}

// arguments returns the parameters of a query for clickhouse-go.
func arguments(query traces.Query) []any {
	args := make([]any, len(query.Params))
	for i, p := range query.Params {
		args[i] = clickhouse.Named(p.Name, p.Value)
	}
	return args
}
