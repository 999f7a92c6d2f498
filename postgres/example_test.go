package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/postgres"
	"github.com/traceflake/traceflake/traceid"
)

// The statements are run once, for instance by a migration; running them again does no harm.
func ExampleStatements() {
	install := func(ctx context.Context, db *sql.DB) error {
		statements, err := postgres.Statements("")
		if err != nil {
			return err
		}
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	_ = install

	statements, err := postgres.Statements("tracing")
	fmt.Println(strings.Contains(statements[0], `FUNCTION "tracing".trace_id_time`), err)
	// Output: true <nil>
}

// A trace ID is stored in a column of type uuid, bytea or text. All three sort as the IDs do, so a
// range of IDs is a range of time.
func Example_columns() {
	insert := func(ctx context.Context, db *sql.DB, path string) error {
		id := trace.SpanContextFromContext(ctx).TraceID()
		// For bytea it is id[:]. pgx itself also takes [16]byte(id) for uuid.
		_, err := db.ExecContext(ctx, "INSERT INTO requests (trace_id, path) VALUES ($1, $2)", id.String(), path)
		return err
	}
	since := func(ctx context.Context, db *sql.DB, t time.Time) (*sql.Rows, error) {
		return db.QueryContext(ctx, "SELECT path FROM requests WHERE trace_id >= $1", traceid.Min(t).String())
	}
	_, _ = insert, since
}
