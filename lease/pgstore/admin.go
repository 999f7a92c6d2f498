package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// List implements [lease.Admin]. It writes nothing: without a table there are
// no blocks.
func (s *Store) List(ctx context.Context) ([]lease.Grant, error) {
	nodes, err := s.look(ctx)
	if errors.Is(err, errNoTable) {
		return nil, nil
	}
	var blocks []lease.Grant
	if err == nil {
		var rows []row
		rows, err = s.rows(ctx, nodes)
		for _, r := range rows {
			if r.block.Version > 0 {
				blocks = append(blocks, lease.Grant(r.block))
			}
		}
	}
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It is one statement, or more if others write
// at this moment.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := driver.CheckRaise(until); err != nil {
		return fmt.Errorf("pgstore: %w", err)
	}
	nodes, err := s.setup(ctx)
	if err == nil {
		err = s.raise(ctx, nodes, until)
	}
	if err != nil {
		return s.failed(ctx, "raise", err)
	}
	return nil
}

func (s *Store) raise(ctx context.Context, nodes driver.NodeRange, until time.Time) error {
	raised := make(map[uint32]bool)
	for try := 0; ; try++ {
		rows, err := s.rows(ctx, nodes)
		if err != nil {
			return err
		}
		if len(rows) < nodes.Blocks() {
			return errors.New("rows of blocks are missing; were they deleted?")
		}
		var left []write
		for _, r := range rows {
			if !raised[r.block.Node] {
				left = append(left, write{r.block, r.block.Raise(until)})
			}
		}
		written, err := s.write(ctx, time.Time{}, left...)
		if err != nil || len(written) == len(left) {
			return err
		}
		maps.Copy(raised, written)
		if try == tries {
			return errNotWritten
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// rows reads the rows of all blocks.
func (s *Store) rows(ctx context.Context, nodes driver.NodeRange) ([]row, error) {
	first, last := bounds(nodes)
	return query(ctx, s, scan, s.sql.list, first, last)
}

// Time implements [lease.Admin].
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := query(ctx, s, pgx.RowTo[int64], clockSQL)
	if err != nil {
		return time.Time{}, s.failed(ctx, "time", err)
	}
	return time.UnixMicro(now[0]), nil
}
