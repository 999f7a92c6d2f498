package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Describe implements [lease.Store]. It is one statement, and one more to find the store.
func (s *store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer explain(ctx, "describe", &err)
	t, err := s.describe(ctx)
	if err != nil {
		return lease.Description{}, err
	}
	return t.Description, nil
}

// Create implements [lease.Admin]. It creates both tables, with all rows, in one transaction: in the
// schema of the URL's search_path, or in public. The role needs CREATE on the schema, and owns the
// tables.
func (s *store) Create(ctx context.Context, d lease.Description) (err error) {
	defer explain(ctx, "create", &err)
	if err := driver.CheckDescription(d); err != nil {
		return err
	}
	return s.transaction(ctx, func(tx pgx.Tx) error {
		found, err := s.find(ctx, tx.Conn())
		if err == nil && found.ID != d.ID {
			err = fmt.Errorf("%w, in the schema %s, with the ID %s, created at %s",
				lease.ErrExists, found.schema, found.ID, found.Created.Format(time.RFC3339))
		}
		if !errors.Is(err, lease.ErrNoStore) {
			return err
		}
		t := tables{schema: cmp.Or(s.schema, "public"), Description: d}
		var all pgx.Batch
		all.Queue(t.sql(createBlocksSQL))
		all.Queue(t.sql(indexBlocksSQL))
		all.Queue(t.sql(createStoreSQL))
		all.Queue(t.sql(insertBlocksSQL), d.ID, d.First, d.First+d.Nodes-1, d.BlockSize)
		all.Queue(t.sql(insertStoreSQL), schemaVersion, d.ID, d.Created.Unix(), d.First, d.Nodes, d.BlockSize,
			int64(d.LongestTTL/time.Second), append([]string{}, d.Secrets...))
		err = tx.SendBatch(ctx, &all).Close()
		if err == nil && !d.Raised.IsZero() {
			err = t.raise(ctx, tx, d.Raised)
		}
		return err
	})
}

// AddSecret implements [lease.Admin].
func (s *store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer explain(ctx, "add a secret", &err)
	if err := driver.CheckFingerprint(fingerprint); err != nil {
		return err
	}
	t, err := s.open(ctx)
	if err != nil {
		return err
	}
	_, err = query(ctx, s, pgx.RowTo[string], t.sql(addSecretSQL), t.ID, fingerprint)
	return err
}

// List implements [lease.Admin]. It is two statements.
func (s *store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer explain(ctx, "list", &err)
	t, err := s.describe(ctx) // a table without grants has no row that names its store
	if err != nil {
		return nil, err
	}
	err = s.session(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, t.sql(listSQL))
		if err != nil {
			return err
		}
		blocks, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (lease.Grant, error) {
			found, err := t.scan(r)
			return lease.Grant(found.Block), err
		})
		return err
	})
	return blocks, err
}

// Raise implements [lease.Admin]. It is one transaction.
func (s *store) Raise(ctx context.Context, until time.Time) (_ time.Time, err error) {
	defer explain(ctx, "raise", &err)
	if err := driver.CheckRaise(until); err != nil {
		return until, err
	}
	err = s.transaction(ctx, func(tx pgx.Tx) error {
		t, err := s.find(ctx, tx.Conn())
		if err != nil {
			return err
		}
		until = driver.RaiseTo(t.Description, until, t.now)
		return t.raise(ctx, tx, until)
	})
	return until, err
}

// raise records the time, and raises every block to it.
func (t *tables) raise(ctx context.Context, tx pgx.Tx, until time.Time) error {
	raised, err := tx.Exec(ctx, t.sql(raiseSQL), t.ID, until.Unix())
	if blocks := driver.RangeOf(t.Description).Blocks(); err == nil && raised.RowsAffected() != int64(blocks) {
		err = fmt.Errorf("only %d of %d blocks were raised: are rows missing, or does a rule, trigger or policy of the table interfere?",
			raised.RowsAffected(), blocks)
	}
	return err
}

// Time implements [lease.Admin].
func (s *store) Time(ctx context.Context) (_ time.Time, err error) {
	defer explain(ctx, "time", &err)
	now, err := query(ctx, s, pgx.RowTo[int64], "SELECT "+nowSQL)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(now), nil
}
