package waterfall

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// Span is a row of the exporter's table of spans. Tags are the names of the columns.
type Span struct {
	Timestamp          time.Time
	TraceID            string `json:"TraceId"`
	SpanID             string `json:"SpanId"`
	ParentSpanID       string `json:"ParentSpanId"`
	TraceState         string
	SpanName           string
	SpanKind           string
	ServiceName        string
	ResourceAttributes map[string]string
	ScopeName          string
	ScopeVersion       string
	SpanAttributes     map[string]string
	Duration           uint64
	StatusCode         string
	StatusMessage      string
	EventsTimestamp    []time.Time         `json:"Events.Timestamp"`
	EventsName         []string            `json:"Events.Name"`
	EventsAttributes   []map[string]string `json:"Events.Attributes"`
	LinksTraceID       []string            `json:"Links.TraceId"`
	LinksSpanID        []string            `json:"Links.SpanId"`
	LinksTraceState    []string            `json:"Links.TraceState"`
	LinksAttributes    []map[string]string `json:"Links.Attributes"`
}

// columns returns, for each column, the pointer to its field in a row.
func columns(row *Span) map[string]any {
	into := make(map[string]any)
	for field, value := range reflect.ValueOf(row).Elem().Fields() {
		name := field.Tag.Get("json")
		if name == "" {
			name = field.Name
		}
		into[name] = value.Addr().Interface()
	}
	return into
}

// Fetch reads the spans of a trace from ClickHouse, and calls each with every one. It never calls
// it if there is no such trace, which is no error.
func Fetch(ctx context.Context, db *sql.DB, schema clickhouse.Schema, id trace.TraceID,
	each func(Span) error) error {
	q, err := schema.Trace(id)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, q.SQL, q.Args()...)
	if err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	var row Span
	known, into := columns(&row), make([]any, len(names))
	for i, name := range names {
		if into[i] = known[name]; into[i] == nil {
			into[i] = new(any)
		}
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("clickhouse: %w", err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	return nil
}
