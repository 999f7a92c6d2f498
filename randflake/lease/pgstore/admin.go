package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/randflake/lease"
)

// List implements [lease.Admin].
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	if err := s.setup(ctx); err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	rows, err := s.query(ctx, s.sql.list, int64(s.nodes.First), int64(s.nodes.First+s.nodes.Nodes-1))
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
	a, err := s.call(ctx, "raise", s.sql.raise, ceil(until),
		int64(s.nodes.First), int64(s.nodes.First+s.nodes.Nodes-1), int64(s.nodes.Blocks()))
	if err != nil {
		return err
	}
	if !a.ok {
		return fmt.Errorf("pgstore: raise in table %s: rows of blocks are missing; were they deleted?", s.name)
	}
	return nil
}
