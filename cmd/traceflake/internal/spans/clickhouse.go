package spans

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// part is how many spans of ClickHouse are passed on at once.
const part = 1000

// ClickHouse is a [Source] on the exporter's tables.
type ClickHouse struct {
	DB     *sql.DB
	Schema clickhouse.Schema
}

func (c ClickHouse) String() string {
	return "ClickHouse's table " + cmp.Or(c.Schema.Table, "otel_traces")
}

// columns returns, for each column, the pointer to its field in a row.
func columns(row any) map[string]any {
	into := make(map[string]any)
	for field, value := range reflect.ValueOf(row).Elem().Fields() {
		into[cmp.Or(field.Tag.Get("ch"), field.Name)] = value.Addr().Interface()
	}
	return into
}

// Trace implements [Source] with one query.
func (c ClickHouse) Trace(
	ctx context.Context, id trace.TraceID, each func(ptrace.Traces) error,
) error {
	q, err := c.Schema.Trace(id)
	if err != nil {
		return err
	}
	var row spanRow
	var b batch
	err = c.rows(ctx, q, columns(&row), func() error {
		if b.add(row); b.rows < part {
			return nil
		}
		full := b.td
		b = batch{}
		return each(full)
	})
	if err == nil && b.rows > 0 {
		err = each(b.td)
	}
	return err
}

// Logs implements [Source] with one query.
func (c ClickHouse) Logs(
	ctx context.Context, id trace.TraceID, each func(plog.Logs) error,
) error {
	q, err := clickhouse.Logs(c.Schema, [][16]byte{id})
	if err != nil {
		return err
	}
	var row logRow
	return c.rows(ctx, q, columns(&row), func() error {
		logs := plog.NewLogs()
		row.addTo(logs)
		return each(logs)
	})
}

// rows runs a query and calls each after every row that was scanned into the columns.
func (c ClickHouse) rows(
	ctx context.Context, q clickhouse.Query, columns map[string]any, each func() error,
) error {
	rows, err := c.DB.QueryContext(ctx, q.SQL, q.Args()...)
	if err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
	}
	into := make([]any, len(names))
	for i, name := range names {
		if into[i] = columns[name]; into[i] == nil {
			into[i] = new(any)
		}
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("ClickHouse: %w", err)
		}
		if err := each(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("ClickHouse: %w", err)
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
