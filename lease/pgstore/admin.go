package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// List implements [lease.Admin]. It writes nothing: without a table there are
// no blocks, and a table of an older version of this library is refused.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	t, err := s.look(ctx)
	if err == nil && t.version > 0 && t.version < schemaVersion {
		err = fmt.Errorf("%w: schema %d is older than %d; the first call of a process of this version, "+
			"or the statement of Schema, migrates it", lease.ErrSchemaVersion, t.version, schemaVersion)
	}
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	if t.version == 0 {
		return nil, nil
	}
	first, last := bounds(t.nodes)
	rows, err := s.query(ctx, s.sql.list, first, last)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	blocks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (lease.Block, error) {
		a, err := scan(row)
		return lease.Block(a.block), err
	})
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It is one transaction.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := driver.CheckRaise(until); err != nil {
		return fmt.Errorf("pgstore: %w", err)
	}
	nodes, err := s.setup(ctx)
	if err != nil {
		return s.failed(ctx, "raise", err)
	}
	first, last := bounds(nodes)
	a, err := s.call(ctx, "raise", s.sql.raise, ceil(until), first, last, int64(nodes.Blocks()))
	if err != nil {
		return err
	}
	if !a.ok {
		return fmt.Errorf("pgstore: raise in table %s: rows of blocks are missing; were they deleted?", s.name)
	}
	return nil
}

// Time implements [lease.Admin].
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	rows, err := s.query(ctx, "WITH "+clock+" SELECT now FROM clock")
	if err == nil {
		var now int64
		if now, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64]); err == nil {
			return time.UnixMicro(now), nil
		}
	}
	return time.Time{}, s.failed(ctx, "time", err)
}
