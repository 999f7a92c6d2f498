package cli

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
)

// eachSpan reads the spans of a trace from ClickHouse, and calls each with every one. It never
// calls it if there is no such trace, which is no error.
func eachSpan(ctx context.Context, db *sql.DB, schema clickhouse.Schema, id trace.TraceID,
	each func(waterfall.Span) error) (err error) {
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
	var row waterfall.Span
	into := fields(&row, names)
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

// fields returns, for each column, the pointer to its field in a row.
func fields(row *waterfall.Span, names []string) []any {
	known := make(map[string]any)
	for field, value := range reflect.ValueOf(row).Elem().Fields() {
		name := field.Tag.Get("json")
		if name == "" {
			name = field.Name
		}
		known[name] = value.Addr().Interface()
	}
	into := make([]any, len(names))
	for i, name := range names {
		if into[i] = known[name]; into[i] == nil {
			into[i] = new(any)
		}
	}
	return into
}
