package clickhouse

import (
	"context"
	"database/sql"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Create runs [Schema.Statements] on a ClickHouse that db is connected to, with
// clickhouse-go's OpenDB for instance. It may be run again at any time.
//
// Errors: what [Schema.CheckVersion] returns, a table of another shape, and
// ClickHouse's own, which name the right that the user lacks.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	statements, err := s.Statements()
	if err != nil {
		return err
	}
	version, err := ddl.Version(ctx, db)
	if err != nil {
		return err
	}
	if err := s.CheckVersion(version); err != nil {
		return err
	}
	return ddl.Exec(ctx, db, statements...)
}
