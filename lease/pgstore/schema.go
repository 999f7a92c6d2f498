package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Schema returns the statement with which the first call creates the table, for
// operators whose processes may not do so. It is idempotent.
func (s *Store) Schema() string { return s.sql.create + ";\n" }

// setup ensures, once, that there is a valid table, and returns the nodes of
// the store.
func (s *Store) setup(ctx context.Context) (driver.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	nodes, err := s.look(ctx)
	if errors.Is(err, errNoTable) {
		if _, err = s.pool.Exec(ctx, s.sql.create); err != nil {
			return nodes, fmt.Errorf("create the table: %w", err)
		}
		if nodes, err = s.look(ctx); errors.Is(err, errNoTable) {
			err = errors.New("the table was created but is not found; is it in another schema of the search path?")
		}
	}
	if err == nil {
		s.nodes.Store(&nodes)
	}
	return nodes, err
}

var errNoTable = errors.New("there is no table")

// look reads the comment on the table, and returns the part of its nodes that
// this store grants.
func (s *Store) look(ctx context.Context) (driver.NodeRange, error) {
	comments, err := query(ctx, s, pgx.RowTo[*string], s.sql.inspect)
	if err == nil && len(comments) == 0 {
		err = errNoTable
	}
	if err != nil {
		return driver.NodeRange{}, err
	}
	comment := ""
	if comments[0] != nil {
		comment = *comments[0]
	}
	var version int
	var size uint32
	if _, err := fmt.Sscanf(comment, commentVersion, &version); err != nil || version < 1 {
		return driver.NodeRange{}, fmt.Errorf("%w: its comment is %q, want one as "+commentFormat+"; it is not a table of leases, or lost its comment",
			lease.ErrSchemaVersion, comment, schemaVersion, driver.DefaultBlockSize)
	}
	if version > schemaVersion {
		return driver.NodeRange{}, fmt.Errorf("%w: schema %d, this version of the library supports %d; use a newer one",
			lease.ErrSchemaVersion, version, schemaVersion)
	}
	if _, err := fmt.Sscanf(comment, commentFormat, &version, &size); err != nil {
		return driver.NodeRange{}, fmt.Errorf("%w: its comment is %q, which has no block size", lease.ErrSchemaVersion, comment)
	}
	return s.asked.Resolve(size)
}
