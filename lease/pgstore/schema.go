package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Schema returns the statement with which the first call creates the table, or
// migrates one of an older version of this library, for operators whose
// processes may not do so. It is idempotent. Older processes are refused once
// it has run; their grants remain valid to their end.
func (s *Store) Schema() string { return s.sql.create + ";\n" }

// setup ensures, once, that there is a valid table, and returns the nodes of
// the store.
func (s *Store) setup(ctx context.Context) (driver.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	t, err := s.look(ctx)
	if err == nil && t.version < schemaVersion { // no table yet, or an old one
		if _, err = s.pool.Exec(ctx, s.sql.create, pgx.QueryExecModeExec); err != nil {
			return driver.NodeRange{}, fmt.Errorf("create the table: %w", err)
		}
		if t, err = s.look(ctx); err == nil && t.version < schemaVersion {
			err = errors.New("the table was created but is not found; is it in another schema of the search path?")
		}
	}
	if err != nil {
		return driver.NodeRange{}, err
	}
	nodes := t.nodes
	s.nodes.Store(&nodes)
	return nodes, nil
}

// table is the content of the comment on the table.
type table struct {
	version int              // of its schema, 0 if there is no table
	nodes   driver.NodeRange // the part of it that this store grants
}

// look reads the comment on the table, if there is one.
func (s *Store) look(ctx context.Context) (t table, err error) {
	rows, err := s.query(ctx, s.sql.inspect)
	if err != nil {
		return t, err
	}
	comment, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (comment *string, err error) {
		var exists bool
		var text *string
		if err := row.Scan(&exists, &text); err != nil || !exists {
			return nil, err
		}
		if text == nil {
			text = new(string)
		}
		return text, nil
	})
	if err != nil || comment == nil {
		return t, err
	}
	if _, err := fmt.Sscanf(*comment, commentVersion, &t.version); err != nil || t.version < 1 {
		return t, fmt.Errorf("%w: its comment is %q, want one as "+commentFormat+"; it is not a table of leases, or lost its comment",
			lease.ErrSchemaVersion, *comment, schemaVersion, driver.DefaultBlockSize)
	}
	if t.version > schemaVersion {
		return t, fmt.Errorf("%w: schema %d, this version of the library supports %d; use a newer one",
			lease.ErrSchemaVersion, t.version, schemaVersion)
	}
	var size uint32
	if _, err := fmt.Sscanf(*comment, commentFormat, &t.version, &size); err != nil {
		return t, fmt.Errorf("%w: its comment is %q, which has no block size", lease.ErrSchemaVersion, *comment)
	}
	t.nodes, err = s.asked.Fit(size)
	return t, err
}
