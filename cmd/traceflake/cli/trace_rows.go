package cli

import (
	"cmp"
	"context"
	"database/sql"
	"reflect"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
)

// eachSpan calls each with every row of a query for traces, whose columns are the fields of a span
// in their order.
func eachSpan(ctx context.Context, db *sql.DB, q clickhouse.Query,
	each func(waterfall.Span)) error {
	rows, err := db.QueryContext(ctx, q.SQL, q.Args()...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var row waterfall.Span
	var into []any
	for _, field := range reflect.ValueOf(&row).Elem().Fields() {
		into = append(into, field.Addr().Interface())
	}
	for err == nil && rows.Next() {
		if err = rows.Scan(into...); err == nil {
			each(row)
		}
	}
	return cmp.Or(err, rows.Err())
}
