package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/contrib/postgres"
)

// The statements are run once, for instance by a migration; running them again does no harm.
func ExampleStatements() {
	install := func(ctx context.Context, db *sql.DB) error {
		for _, s := range postgres.Statements("tracing") {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	_ = install

	for _, s := range postgres.Statements("tracing") {
		_, s, _ = strings.Cut(s, "CREATE OR REPLACE FUNCTION ")
		name, _, _ := strings.Cut(s, " RETURNS")
		fmt.Println(name)
	}
	// Output:
	// "tracing".trace_id_time(id text)
	// "tracing".trace_id_time(id bytea)
	// "tracing".trace_id_time(id uuid)
	// "tracing".trace_id_min(t timestamptz)
	// "tracing".trace_id_max(t timestamptz)
	// "tracing".trace_id_at(t timestamptz)
}
