package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	others []costs // of other lookups, measured before serving starts
}

func newFinder(engine *servers.Engine, ring *randflake.Keyring) (*finder, error) {
	options, err := clickhouse.ParseDSN(engine.DSN())
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(options)
	return &finder{engine: engine, ring: ring, conn: conn}, err
}

// table is the default one.
var table = traces.Schema{Table: "otel_traces"}

// createTables creates the table for the exporter, and the one that the exporter would create by
// default. A view copies each span into it, so that the same lookups can be measured in both.
func (f *finder) createTables(ctx context.Context) error {
	statements, err := table.Statements()
	if err != nil {
		return err
	}
	own, err := startExporter(ctx, f.engine.DSN(), exporterTable, true)
	if err == nil {
		err = own.Shutdown(ctx)
	}
	for _, sql := range append(statements, "CREATE MATERIALIZED VIEW "+exporterTable+"_copy TO "+exporterTable+" AS SELECT * FROM otel_traces") {
		if err == nil {
			err = f.conn.Exec(ctx, sql)
		}
	}
	if err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return nil
}

// summaries returns summaries of all traces whose IDs were generated after a time.
func (f *finder) summaries(ctx context.Context, after time.Time) (all []summary, err error) {
	const sql = `SELECT TraceId, count() AS Spans, uniqExact(SpanId) AS Distinct, uniqExact(ServiceName) AS Services,
		argMin(ParentSpanId, (ServiceName != 'edge', Timestamp)) AS Parent
		FROM otel_traces GROUP BY TraceId HAVING toUnixTimestamp64Milli(min(Timestamp)) >= {after:Int64}`
	return all, f.conn.Select(ctx, &all, sql, clickhouse.Named("after", strconv.FormatInt(after.UnixMilli(), 10)))
}

// span is a row of the table.
type span struct {
	Timestamp    time.Time
	SpanID       string `ch:"SpanId"`
	ParentSpanID string `ch:"ParentSpanId"`
	SpanName     string
	ServiceName  string
	Duration     uint64 // nanoseconds
}

// Took is how long the span lasted.
func (s span) Took() time.Duration { return time.Duration(s.Duration) }

// found is a trace and what finding it cost.
type found struct {
	drawing
	ID      trace.TraceID
	Decoded string // a description of the low half
	Costs   []costs
}

// Began is the time in the ID.
func (t found) Began() time.Time { return traceid.Time(t.ID) }

// Sequence is the number in the ID.
func (t found) Sequence() uint32 { return traceid.Sequence(t.ID) }

var errNoTrace = errors.New("found no trace")

// trace finds a trace by its ID, whether our generator created the ID or not.
func (f *finder) trace(ctx context.Context, id trace.TraceID) (t found, err error) {
	t.ID, t.Decoded = id, decode(f.ring, id)
	var spans []span
	const columns = "Timestamp, SpanId, ParentSpanId, SpanName, ServiceName, Duration"
	if err := f.conn.Select(ctx, &spans, fmt.Sprintf("SELECT "+columns+" FROM otel_traces WHERE TraceId = '%s'", id)); err != nil {
		return t, err
	}
	if len(spans) == 0 {
		return t, fmt.Errorf("%w %s", errNoTrace, id)
	}
	t.drawing = draw(spans)
	one, err := f.measure(ctx, "One trace by its ID", id.String())
	t.Costs = append([]costs{one}, f.others...)
	return t, err
}

// decode describes what the secrets reveal in a trace ID.
func decode(ring *randflake.Keyring, id trace.TraceID) string {
	info := traceid.Inspect(ring, id)
	if !info.Agree {
		return "nothing: it is random, or from another secret"
	}
	return fmt.Sprintf("node %d, second %s, sequence %d",
		info.Parts.Node, info.Parts.Time.UTC().Format(time.RFC3339), info.Parts.Sequence)
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

// Began is the time in the ID.
func (l listed) Began() time.Time {
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
	for length := time.Minute; ; length *= 4 {
		from := to.Add(-length)
		if from.Before(epoch) {
			from = epoch
		}
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
		if from.Equal(epoch) {
			return list, false, nil
		}
	}
}

// arguments returns the parameters of a query for clickhouse-go.
func arguments(query traces.Query) []any {
	args := make([]any, len(query.Params))
	for i, p := range query.Params {
		args[i] = clickhouse.Named(p.Name, p.Value)
	}
	return args
}

// costs are what ClickHouse reports to have read for one query on our table and on the exporter's.
type costs struct {
	What string
	Rows []costRow
}

// costRow is one kind of cost in both tables.
type costRow struct {
	Kind, Ours, Exporter string
}

// measure looks up traces by their IDs in both tables, three times: each time reads the same amount,
// and the shortest is the least disturbed by other load.
func (f *finder) measure(ctx context.Context, what string, ids ...string) (costs, error) {
	var texts [2][3]string
	for i, name := range []string{"otel_traces", exporterTable} {
		sql := "SELECT * FROM " + name + " WHERE TraceId IN ('" + strings.Join(ids, "', '") + "')"
		shortest := time.Hour
		for range 3 {
			r, err := f.engine.Query(ctx, sql)
			if err != nil {
				return costs{}, err
			}
			shortest = min(shortest, r.Elapsed)
			texts[i] = [3]string{fmt.Sprint(r.RowsRead), fmt.Sprintf("%.2f", float64(r.BytesRead)/1e6), milliseconds(shortest)}
		}
	}
	c := costs{What: what}
	for i, kind := range []string{"rows read", "megabytes, uncompressed", "time"} {
		c.Rows = append(c.Rows, costRow{kind, texts[0][i], texts[1][i]})
	}
	return c, nil
}

// merge merges the parts of each partition. New spans are in small parts at first, where every
// lookup is fast, whatever the order.
func (f *finder) merge(ctx context.Context) error {
	for _, name := range []string{"otel_traces", exporterTable} {
		if _, err := f.engine.Query(ctx, "OPTIMIZE TABLE "+name+" FINAL"); err != nil {
			return fmt.Errorf("merge the parts: %w", err)
		}
	}
	return nil
}
