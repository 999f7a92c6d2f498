package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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
	if err := s.checkServer(ctx, db); err != nil {
		return err
	}
	return execAll(ctx, db, statements)
}

func (s Schema) checkServer(ctx context.Context, db *sql.DB) error {
	var version string
	if err := db.QueryRowContext(ctx, "SELECT version()").Scan(&version); err != nil {
		return fmt.Errorf("clickhouse: ask for the server's version: %w", err)
	}
	return s.CheckVersion(version)
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if err := exec(ctx, db, statement); err != nil {
			return err
		}
	}
	return nil
}

func exec(ctx context.Context, db *sql.DB, statement string) error {
	if _, err := db.ExecContext(ctx, statement); err != nil {
		first, _, _ := strings.Cut(statement, "\n")
		if len(first) > 120 {
			first = first[:120] + " …"
		}
		return fmt.Errorf("clickhouse: %s: %w", first, err)
	}
	return nil
}
