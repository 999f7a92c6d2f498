package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// place is a store that was found. A client uses the one that it found first, by its full name and
// with its ID as a condition of every write.
type place struct {
	lease.Description
	nodes  driver.NodeRange
	schema string
	now    time.Time // when it was read, by the server's clock
}

// same returns an error if another store is here.
func (p *place) same(id string) error {
	if id != p.ID {
		return fmt.Errorf("%w: it has the ID %q, and had %s", lease.ErrReplaced, id, p.ID)
	}
	return nil
}

// setup returns the store in use, of which the nodes and the longest TTL never change.
func (s *Store) setup(ctx context.Context) (*place, error) {
	if p := s.used.Load(); p != nil {
		return p, nil
	}
	return s.describe(ctx)
}

// describe reads the description of the store in use, or of the one that it finds.
func (s *Store) describe(ctx context.Context) (p *place, err error) {
	err = s.session(ctx, func(c *pgx.Conn) (err error) {
		p, err = s.locate(ctx, c)
		return err
	})
	return p, err
}

func (s *Store) locate(ctx context.Context, db querier) (p *place, err error) {
	used := s.used.Load()
	if used == nil {
		used = new(place)
		if used.schema, err = s.find(ctx, db); err != nil {
			return nil, err
		}
	}
	if p, err = s.read(ctx, db, used.schema); err != nil {
		return nil, err
	}
	s.used.CompareAndSwap(nil, p)
	return p, s.used.Load().same(p.ID)
}

// find returns the schema of the only store that there is, whatever the server's search path.
func (s *Store) find(ctx context.Context, db querier) (string, error) {
	var readable, other []string
	_, err := collect(ctx, db, func(r pgx.CollectableRow) (any, error) { return nil, r.Scan(&readable, &other) },
		findSQL, s.name+suffix, s.schema)
	switch {
	case err != nil:
		return "", err
	case len(readable) == 1:
		return readable[0], nil
	case len(readable) > 1:
		return "", fmt.Errorf("%w: there are stores in the schemas %s: choose one with ?search_path=SCHEMA in the URL",
			lease.ErrMisconfigured, strings.Join(readable, ", "))
	case len(other) > 0:
		return "", fmt.Errorf("%w: it may not read the store in the schema %s: %s", lease.ErrMisconfigured, strings.Join(other, ", "), rights)
	case s.schema != "":
		return "", fmt.Errorf("schema %s: %w", s.schema, lease.ErrNoStore)
	}
	return "", lease.ErrNoStore
}

// read reads the description of the store in a schema.
func (s *Store) read(ctx context.Context, db querier, schema string) (*place, error) {
	found, err := collect(ctx, db, func(r pgx.CollectableRow) (*place, error) {
		var now, created, raised, ttl int64
		var version int
		p := &place{schema: schema}
		err := r.Scan(&now, &version, &p.ID, &created, &p.First, &p.Nodes, &p.BlockSize, &ttl, &raised, &p.Secrets)
		p.now, p.Created, p.Raised, p.LongestTTL = time.UnixMicro(now), second(created), second(raised), time.Duration(ttl)*time.Second
		p.nodes = driver.RangeOf(p.Description)
		if err == nil && version != schemaVersion {
			err = fmt.Errorf("%w: %d, this version of the library supports %d", lease.ErrSchemaVersion, version, schemaVersion)
		}
		return p, err
	}, s.statement(schema, aboutSQL))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%w: %s%s has %d rows, want one", lease.ErrSchemaVersion, s.name, suffix, len(found))
	}
	if err := driver.CheckDescription(found[0].Description); err != nil {
		return nil, fmt.Errorf("%w: %s%s was edited: %w", lease.ErrSchemaVersion, s.name, suffix, err)
	}
	return found[0], nil
}

// Describe implements [lease.Store]. It is one statement, and one more to find the store.
func (s *Store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.explain(ctx, "describe", &err)
	p, err := s.describe(ctx)
	if err != nil {
		return lease.Description{}, err
	}
	return p.Description, nil
}

// Create implements [lease.Admin]. It creates both tables, with all rows, in one transaction: in the
// schema of [WithTable] or of the URL's search_path, or in public. The role
// needs CREATE on the schema, and owns the tables.
func (s *Store) Create(ctx context.Context, d lease.Description) (err error) {
	defer s.explain(ctx, "create", &err)
	if err := driver.CheckDescription(d); err != nil {
		return err
	}
	schema := cmp.Or(s.schema, "public")
	return s.transaction(ctx, func(tx pgx.Tx) error {
		p, err := s.locate(ctx, tx)
		if err == nil && p.ID != d.ID {
			err = fmt.Errorf("%w, in the schema %s, with the ID %s, created at %s",
				lease.ErrExists, p.schema, p.ID, p.Created.Format(time.RFC3339))
		}
		if !errors.Is(err, lease.ErrNoStore) {
			return err
		}
		exec := func(sql string, args ...any) {
			if err == nil {
				_, err = tx.Exec(ctx, s.statement(schema, sql), args...)
			}
		}
		err = nil
		exec(createSQL)
		exec(blocksSQL, d.ID, d.First, d.First+d.Nodes-1, d.BlockSize)
		exec(describeSQL, schemaVersion, d.ID, d.Created.Unix(), d.First, d.Nodes, d.BlockSize,
			int64(d.LongestTTL/time.Second), append([]string{}, d.Secrets...))
		if err == nil && !d.Raised.IsZero() {
			err = s.raise(ctx, tx, &place{Description: d, nodes: driver.RangeOf(d), schema: schema}, d.Raised)
		}
		return err
	})
}

// AddSecret implements [lease.Admin].
func (s *Store) AddSecret(ctx context.Context, fingerprint string) (err error) {
	defer s.explain(ctx, "add a secret", &err)
	if err := driver.CheckFingerprint(fingerprint); err != nil {
		return err
	}
	p, err := s.describe(ctx)
	if err != nil {
		return err
	}
	added, err := query(ctx, s, pgx.RowTo[string], s.statement(p.schema, addSecretSQL), p.ID, fingerprint)
	if err == nil && len(added) == 0 {
		err = lease.ErrReplaced
	}
	return err
}

// List implements [lease.Admin]. It is two statements.
func (s *Store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer s.explain(ctx, "list", &err)
	p, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	return query(ctx, s, func(r pgx.CollectableRow) (lease.Grant, error) {
		row, err := p.scan(r)
		return lease.Grant(row.block), err
	}, s.statement(p.schema, listSQL))
}

// Raise implements [lease.Admin]. It is one transaction.
func (s *Store) Raise(ctx context.Context, until time.Time) (_ time.Time, err error) {
	defer s.explain(ctx, "raise", &err)
	if err := driver.CheckRaise(until); err != nil {
		return until, err
	}
	if _, err := s.setup(ctx); err != nil {
		return until, err
	}
	err = s.transaction(ctx, func(tx pgx.Tx) error {
		p, err := s.locate(ctx, tx)
		if err != nil {
			return err
		}
		until = driver.RaiseTo(p.Description, until, p.now)
		return s.raise(ctx, tx, p, until)
	})
	return until, err
}

func (s *Store) raise(ctx context.Context, tx pgx.Tx, p *place, until time.Time) error {
	if _, err := tx.Exec(ctx, s.statement(p.schema, recordSQL), p.ID, until.Unix()); err != nil {
		return err
	}
	raised, err := tx.Exec(ctx, s.statement(p.schema, raiseSQL), p.ID, until.Unix())
	if blocks := p.nodes.Blocks(); err == nil && raised.RowsAffected() != int64(blocks) {
		err = fmt.Errorf("only %d of %d blocks were raised: are rows missing? %w", raised.RowsAffected(), blocks, errNotWritten)
	}
	return err
}

// Time implements [lease.Admin].
func (s *Store) Time(ctx context.Context) (_ time.Time, err error) {
	defer s.explain(ctx, "time", &err)
	now, err := query(ctx, s, pgx.RowTo[int64], "SELECT "+nowSQL)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(now[0]), nil
}
