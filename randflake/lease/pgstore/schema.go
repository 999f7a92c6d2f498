package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/randflake/lease"
)

// Schema returns the statement that the first call makes the table with, for
// an operator whose processes may not. It does nothing when the table exists.
func (s *Store) Schema() string { return s.sql.create + ";\n" }

// setup makes sure, once, that there is a table of the right kind, and returns
// the nodes that the store has.
func (s *Store) setup(ctx context.Context) (lease.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	exists, comment, err := s.inspect(ctx)
	if err == nil && !exists {
		if _, err = s.pool.Exec(ctx, s.sql.create, pgx.QueryExecModeExec); err != nil {
			return lease.NodeRange{}, fmt.Errorf("make the table: %w", err)
		}
		if exists, comment, err = s.inspect(ctx); err == nil && !exists {
			err = errors.New("the table was made and is not found; is it in another schema of the search path?")
		}
	}
	if err != nil {
		return lease.NodeRange{}, err
	}
	nodes := s.asked
	size, err := blockSizeOf(comment)
	switch {
	case err != nil:
		return lease.NodeRange{}, err
	case s.adopt:
		nodes.BlockSize = size
		if err := nodes.Check(); err != nil {
			return lease.NodeRange{}, err
		}
	case size != nodes.BlockSize:
		return lease.NodeRange{}, fmt.Errorf("%w: %d nodes, not %d", lease.ErrBlockSize, size, nodes.BlockSize)
	}
	s.nodes.Store(&nodes)
	return nodes, nil
}

func (s *Store) inspect(ctx context.Context) (exists bool, comment string, err error) {
	rows, err := s.query(ctx, s.sql.inspect)
	if err != nil {
		return false, "", err
	}
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var text *string
		err := row.Scan(&exists, &text)
		if text != nil {
			comment = *text
		}
		return struct{}{}, err
	})
	return exists, comment, err
}

// blockSizeOf reads the comment on the table.
func blockSizeOf(comment string) (size uint32, err error) {
	var version uint32
	if _, err := fmt.Sscanf(comment, commentVersion, &version); err != nil {
		return 0, fmt.Errorf("%w: its comment is %q, want one as "+commentFormat+"; it is no table of leases, or lost its comment",
			lease.ErrSchemaVersion, comment, schemaVersion, lease.DefaultBlockSize)
	}
	if version != schemaVersion {
		return 0, fmt.Errorf("%w: schema %d, this version of the library knows %d; use a newer one", lease.ErrSchemaVersion, version, schemaVersion)
	}
	if _, err := fmt.Sscanf(comment, commentFormat, &version, &size); err != nil {
		return 0, fmt.Errorf("%w: its comment is %q, which says no block size", lease.ErrSchemaVersion, comment)
	}
	return size, nil
}
