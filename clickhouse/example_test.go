package clickhouse_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// The table of spans and the functions are created with any client, statement by
// statement, and again at any time.
func ExampleSchema_Statements() {
	schema := clickhouse.Schema{Database: "otel", Table: "spans", TTL: 30 * 24 * time.Hour}
	statements, err := schema.Statements()
	if err != nil {
		panic(err)
	}
	run := func(ctx context.Context, db *sql.DB) error {
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	_ = run

	_, err = clickhouse.Schema{TTL: -time.Hour}.Statements()
	fmt.Println(len(statements) > 1, err != nil)
	// Output: true true
}
