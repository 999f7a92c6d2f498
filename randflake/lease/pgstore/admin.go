package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/randflake/lease"
)

// List implements [lease.Admin].
// It does not make the table: without one there are no blocks.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	if exists, _, err := s.inspect(ctx); err != nil {
		return nil, s.failed(ctx, "list", err)
	} else if !exists {
		return nil, nil
	}
	nodes, err := s.setup(ctx)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	first, last := bounds(nodes)
	rows, err := s.query(ctx, s.sql.list, first, last)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	blocks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (lease.Block, error) {
		a, err := scan(row)
		return a.block, err
	})
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It is one transaction.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := lease.CheckRaise(until); err != nil {
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
