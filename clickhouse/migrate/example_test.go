package migrate_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/migrate"
)

func ExampleRun() {
	var db *sql.DB // of clickhouse-go's OpenDB
	schema := clickhouse.Schema{Database: "otel"}
	run := func(ctx context.Context) error {
		return migrate.Run(ctx, db, schema, func(p migrate.Progress) {
			log.Printf("partition %s: %d spans moved, %d left", p.Partition, p.Moved, p.Left)
		})
	}
	_ = run
}
