package clickhouse

import (
	"context"
	"database/sql"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Create runs [Schema.Statements] on the ClickHouse of db, for example from
// clickhouse-go's OpenDB. It can be run again at any time.
//
// Errors: those of [CheckVersion], a table of another shape, and
// ClickHouse's own, which name a missing privilege.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	statements, err := s.Statements()
	if err != nil {
		return err
	}
	version, err := ddl.Version(ctx, db)
	if err != nil {
		return err
	}
	if err := CheckVersion(version); err != nil {
		return err
	}
	return ddl.Exec(ctx, db, statements...)
}
