package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Describe implements [lease.Store]. It is one statement.
func (s *store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer explain(ctx, "describe", &err)
	d, err := s.describe(ctx)
	if err != nil {
		return lease.Description{}, err
	}
	return d.Description, nil
}

// Create implements [lease.Admin]. It creates both tables, with all rows, in one transaction. The role
// needs CREATE on the schema, and owns the tables.
func (s *store) Create(ctx context.Context, d lease.Description) (err error) {
	defer explain(ctx, "create", &err)
	if err := driver.CheckDescription(d); err != nil {
		return err
	}
	d.Secrets = append([]string{}, d.Secrets...) // never null
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	err = s.transaction(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, s.sql(createSQL))
		if err == nil {
			_, err = tx.Exec(ctx, s.sql(insertSQL), schemaVersion, d.ID, string(text), d.First, d.First+d.Nodes-1, d.BlockSize)
		}
		if err == nil && !d.Raised.IsZero() {
			err = s.raise(ctx, tx, d, d.Raised)
		}
		return err
	})
	if code(err) != tableExists {
		return err
	}
	found, unknown := s.describe(ctx)
	switch {
	case unknown != nil:
		return err
	case found.ID != d.ID:
		return fmt.Errorf("%w, in the schema %s, with the ID %s, created at %s",
			lease.ErrExists, s.schema, found.ID, found.Created.Format(time.RFC3339))
	}
	return nil // it was created before
}

// AddSecret implements [lease.Admin].
func (s *store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer explain(ctx, "add a secret", &err)
	if err := driver.CheckFingerprint(fingerprint); err != nil {
		return err
	}
	d, err := s.open(ctx)
	if err != nil {
		return err
	}
	_, err = one(ctx, s, pgx.RowTo[string], s.sql(addSecretSQL), d.ID, fingerprint)
	return err
}

// List implements [lease.Admin]. It is two statements.
func (s *store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer explain(ctx, "list", &err)
	d, err := s.describe(ctx) // the answer has no row with the store's ID if there are no grants
	if err != nil {
		return nil, err
	}
	err = s.session(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, s.sql(listSQL))
		if err == nil {
			blocks, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (lease.Grant, error) {
				found, err := d.scan(r)
				return lease.Grant(found.Block), err
			})
		}
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
		d, err := s.find(ctx, tx.Conn())
		if err != nil {
			return err
		}
		until = driver.RaiseTo(d.Description, until, d.now)
		return s.raise(ctx, tx, d.Description, until)
	})
	return until, err
}

// raise records the time, and raises every block to it.
func (s *store) raise(ctx context.Context, tx pgx.Tx, d lease.Description, until time.Time) error {
	raised, err := tx.Exec(ctx, s.sql(raiseSQL), d.ID, until.Unix(), until.Format(time.RFC3339))
	if blocks := driver.RangeOf(d).Blocks(); err == nil && raised.RowsAffected() != int64(blocks) {
		err = fmt.Errorf("only %d of %d blocks were raised: are rows missing, or does a rule, trigger or policy of the table interfere?",
			raised.RowsAffected(), blocks)
	}
	return err
}

// Time implements [lease.Admin].
func (s *store) Time(ctx context.Context) (_ time.Time, err error) {
	defer explain(ctx, "time", &err)
	now, err := one(ctx, s, pgx.RowTo[int64], "SELECT "+nowSQL)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(now), nil
}
