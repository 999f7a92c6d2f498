// Package ddl renders the SQL that creates tables of spans: names, columns,
// tables, views, and the guards that refuse other tables.
package ddl

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Table is a table of spans with its views and functions.
type Table struct {
	Database   string // "" is the connection's
	Name       string // "" is otel_traces
	Cluster    string // "" is one server
	TTL        time.Duration
	TraceFirst bool // sorted by trace within the hour; otherwise by service and name
	KeepLookup bool // with the exporter's lookup table; otherwise with views of its names
}

// Exec runs statements in order. Its error names the one that failed.
func Exec(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			first, _, _ := strings.Cut(statement, "\n")
			if len(first) > 120 {
				first = first[:120] + " …"
			}
			return fmt.Errorf("clickhouse: %s: %w", first, err)
		}
	}
	return nil
}
