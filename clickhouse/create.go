package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Create runs [Schema.Statements] on the ClickHouse of db, for example from
// clickhouse-go's OpenDB. It can be run again at any time.
//
// Errors: a server that is too old, a table of another shape, and ClickHouse's
// own, which name a missing privilege.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	statements, err := s.Statements()
	if err != nil {
		return err
	}
	return ddl.Exec(ctx, db, statements...)
}

// MaterializeIndexes builds the index on ranges of trace IDs for the spans of an
// Overlay, and for the logs if LogsTable is set, that were stored before [Schema.Create]
// added it. progress, which may be nil, gets how many parts are left, about once a
// second. ClickHouse goes on if ctx ends. It costs about a second of CPU for six
// million rows, and 0.01 bytes a row.
func (s Schema) MaterializeIndexes(ctx context.Context, db *sql.DB, progress func(partsLeft uint64)) error {
	if err := s.validate(); err != nil {
		return err
	}
	if err := ddl.Exec(ctx, db, s.indexes(ddl.Table.MaterializeRangeIndex)...); err != nil {
		return err
	}
	tables := s.indexes(func(t ddl.Table) string { return ddl.QuoteText(t.Named("")) })
	if len(tables) == 0 {
		return nil
	}
	query := fmt.Sprintf("SELECT sum(parts_to_do), anyIf(latest_fail_reason, latest_fail_reason != '') FROM system.mutations\n"+
		"WHERE database = %s AND table IN (%s) AND NOT is_done AND command LIKE '%%MATERIALIZE INDEX %s%%'",
		s.ddl().InDatabase(), strings.Join(tables, ", "), ddl.RangeIndex)
	for {
		var left uint64
		var failure string
		if err := db.QueryRowContext(ctx, query).Scan(&left, &failure); err != nil {
			return fmt.Errorf("clickhouse: query the progress of the index: %w", err)
		}
		switch {
		case failure != "":
			return fmt.Errorf("clickhouse: the index was added but cannot be built for old parts: %s", failure)
		case left == 0:
			return nil
		}
		if progress != nil {
			progress(left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
