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

// setup makes sure, once, that there is a table of the right kind.
func (s *Store) setup(ctx context.Context) error {
	if s.ready.Load() {
		return nil
	}
	exists, comment, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	if !exists {
		if _, err := s.pool.Exec(ctx, s.sql.create, pgx.QueryExecModeExec); err != nil {
			return fmt.Errorf("make the table: %w", err)
		}
		if exists, comment, err = s.inspect(ctx); err != nil {
			return err
		}
		if !exists {
			return errors.New("the table was made and is not found; is it in another schema of the search path?")
		}
	}
	if err := s.checkComment(comment); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
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

func (s *Store) checkComment(comment string) error {
	var version, size uint32
	if _, err := fmt.Sscanf(comment, commentVersion, &version); err != nil {
		return fmt.Errorf("%w: its comment is %q, want one as "+commentFormat+"; it is no table of leases, or lost its comment",
			lease.ErrSchemaVersion, comment, schemaVersion, s.nodes.BlockSize)
	}
	if version != schemaVersion {
		return fmt.Errorf("%w: schema %d, this version of the library knows %d; use a newer one", lease.ErrSchemaVersion, version, schemaVersion)
	}
	if _, err := fmt.Sscanf(comment, commentFormat, &version, &size); err != nil {
		return fmt.Errorf("%w: its comment is %q, which says no block size", lease.ErrSchemaVersion, comment)
	}
	if size != s.nodes.BlockSize {
		return fmt.Errorf("%w: %d nodes, not %d", lease.ErrBlockSize, size, s.nodes.BlockSize)
	}
	return nil
}
