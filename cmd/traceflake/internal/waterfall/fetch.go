package waterfall

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// part is how many spans are passed on at once.
const part = 1000

// columns returns, for each column, the pointer to its field in a row.
func columns(row any) map[string]any {
	into := make(map[string]any)
	for field, value := range reflect.ValueOf(row).Elem().Fields() {
		into[cmp.Or(field.Tag.Get("ch"), field.Name)] = value.Addr().Interface()
	}
	return into
}

// Fetch reads the spans of a trace from ClickHouse, and calls each with up to 1000 at a time. It
// calls it never if there is no such trace, which is no error.
func Fetch(ctx context.Context, db *sql.DB, schema clickhouse.Schema, id trace.TraceID,
	each func(ptrace.Traces) error) error {
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
	var row spanRow
	known, into := columns(&row), make([]any, len(names))
	for i, name := range names {
		if into[i] = known[name]; into[i] == nil {
			into[i] = new(any)
		}
	}
	var b batch
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("clickhouse: %w", err)
		}
		if b.add(row); b.rows == part {
			if err := each(b.td); err != nil {
				return err
			}
			b = batch{}
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	if b.rows > 0 {
		return each(b.td)
	}
	return nil
}

// traceID returns the ID in hex digits, or zeros if they are none.
func traceID(digits string) pcommon.TraceID {
	id, _ := trace.TraceIDFromHex(digits)
	return pcommon.TraceID(id)
}

// spanID is traceID for span IDs.
func spanID(digits string) pcommon.SpanID {
	id, _ := trace.SpanIDFromHex(digits)
	return pcommon.SpanID(id)
}

// put adds attributes in the order of their keys.
func put(m pcommon.Map, attributes map[string]string) {
	m.EnsureCapacity(len(attributes))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		m.PutStr(key, attributes[key])
	}
}
