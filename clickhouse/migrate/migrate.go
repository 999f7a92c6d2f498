package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Progress is the progress of [Run].
type Progress struct {
	Partition   string // ID of the partition just moved
	Rows        uint64 // in it
	Moved, Left uint64 // rows in all
}

// Run migrates the table that s names. progress may be nil.
//
// First the new table takes the old one's name, in one step, so that new spans
// go into it; the exporter needs no restart. Run waits for statements that
// still use the old table. Then the old spans follow partition by partition;
// until then, queries do not see them. A copy is accepted only if the number of
// rows and the checksum of all columns match the original. The old rows stay in the
// table with the suffix _old: drop it, or partitions of it, when you are satisfied.
// At the end views replace the exporter's lookup table and its view, unless the
// schema keeps them.
//
// Columns that the exporter does not write are kept with their defaults and
// indexes, and so are those of kind MATERIALIZED and ALIAS.
//
// A table that is missing ([ErrNoTable]) or cannot be migrated, a disk without
// space for the copy, or another table under a name that the migration needs is
// refused before anything is changed. After an error or an
// interruption run it again: it continues from any point and moves no span twice.
// If two run at once, the later one goes on and the earlier one ends with
// [ErrTakenOver]. On a cluster run it on each server that holds an old table, one
// by one.
func Run(ctx context.Context, db *sql.DB, s clickhouse.Schema, progress func(Progress)) error {
	m, err := open(ctx, db, s)
	if err != nil {
		return err
	}
	reached, err := m.look(ctx)
	if err != nil {
		return err
	}
	switch reached {
	case noTable:
		return m.noTable(ctx)
	case notNeeded:
		return s.Create(ctx, db)
	case notBegun:
		if err := m.checkSpace(ctx); err != nil {
			return err
		}
		if err := m.exec(ctx, m.like(moving, "")); err != nil {
			return err
		}
	}
	if err := m.takeOver(ctx); err != nil {
		return err
	}
	if reached, err = m.look(ctx); err != nil { // another run may have changed it until now
		return err
	}
	if reached == notBegun {
		if err := m.exec(ctx, m.exchange()...); err != nil {
			return err
		}
	}
	left, err := m.prepare(ctx)
	for err == nil && left {
		var p Progress
		if p, left, err = m.step(ctx); p.Partition != "" && progress != nil {
			progress(p)
		}
	}
	if err != nil {
		return err
	}
	return m.finish(ctx)
}

type migration struct {
	ddl.Table
	schema clickhouse.Schema
	db     *sql.DB
	mark   string  // the comment on its tables
	run    string  // the name of this run, once it has taken over
	extra  []extra // columns that the exporter does not write
	skip   []index // skip indexes that the new table lacks
}

func open(ctx context.Context, db *sql.DB, s clickhouse.Schema) (migration, error) {
	t := ddl.Table{Database: s.Database, Name: s.Table, Cluster: s.Cluster, TTL: s.TTL, TraceFirst: s.Layout == clickhouse.TraceFirst, KeepLookup: s.KeepLookup}
	m := migration{Table: t, schema: s, db: db, mark: "traceflake: migration of " + t.Named("")}
	if _, err := s.Statements(); err != nil {
		return m, err
	}
	if s.Layout == clickhouse.Overlay {
		return m, errors.New("clickhouse: migrate: the layout Overlay is the exporter's own table; there is nothing to migrate")
	}
	if err := ddl.Exec(ctx, db, ddl.VersionGuard()); err != nil || s.Cluster == "" {
		return m, err
	}
	// The copy is on all servers, and each server's migration has its own.
	var server string
	if err := db.QueryRowContext(ctx, "SELECT toString(serverUUID())").Scan(&server); err != nil {
		return m, fmt.Errorf("clickhouse: migrate: query the server's ID: %w", err)
	}
	m.mark += " of server " + server
	return m, nil
}

func (m migration) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := m.stillAlone(ctx); err != nil {
			return err
		}
		if err := ddl.Exec(ctx, m.db, statement); err != nil {
			return err
		}
	}
	return nil
}

func (m migration) number(ctx context.Context, query string) (n uint64, err error) {
	if err := m.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("clickhouse: migrate: %s: %w", query, err)
	}
	return n, nil
}

func (m migration) isThere(ctx context.Context, suffix string) (bool, error) {
	n, err := m.number(ctx, fmt.Sprintf("SELECT count() FROM system.tables WHERE database = %s AND name = %s",
		m.InDatabase(), ddl.QuoteText(m.Named(suffix))))
	return n > 0, err
}
