package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// schemaVersion is raised when an older version of this package could damage
// the tables.
const schemaVersion = 1

// description is that of a store, as it was at now.
type description struct {
	lease.Description
	now time.Time // by the server's clock
}

// sql fills in the full names of the tables. No statement relies on the server's
// search path: behind pgbouncer it may be another client's.
func (s *store) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{s.schema}.Sanitize())
}

// same returns an error if the store with this ID is not d.
func (d *description) same(id string) error {
	if id != d.ID {
		return fmt.Errorf("%w: it has the ID %q, and had %s", lease.ErrReplaced, id, d.ID)
	}
	return nil
}

// open returns the store in use. Its nodes and longest TTL never change.
func (s *store) open(ctx context.Context) (*description, error) {
	if d := s.used.Load(); d != nil {
		return d, nil
	}
	return s.describe(ctx)
}

// describe reads the description of the store. The first one that a client reads is the store that it
// uses: every write has the ID as a condition.
func (s *store) describe(ctx context.Context) (d *description, err error) {
	err = s.session(ctx, func(c *pgx.Conn) (err error) {
		d, err = s.find(ctx, c)
		return err
	})
	return d, err
}

func (s *store) find(ctx context.Context, c *pgx.Conn) (*description, error) {
	var d description
	var now int64
	var rows, version int
	err := c.QueryRow(ctx, s.sql(describeSQL)).Scan(&rows, &now, &version, &d.Description)
	switch {
	case code(err) == noTable && s.used.Load() == nil:
		return nil, fmt.Errorf("schema %s: %w", s.schema, lease.ErrNoStore)
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	case rows != 1:
		return nil, fmt.Errorf("%w: traceflake_leases_store has %d rows, want one", lease.ErrSchemaVersion, rows)
	case version != schemaVersion:
		return nil, fmt.Errorf("%w: %d, this version of the library supports %d", lease.ErrSchemaVersion, version, schemaVersion)
	}
	d.now = time.UnixMicro(now)
	if err := driver.CheckDescription(d.Description); err != nil {
		return nil, fmt.Errorf("%w: traceflake_leases_store was edited: %w", lease.ErrSchemaVersion, err)
	}
	s.used.CompareAndSwap(nil, &d)
	return &d, s.used.Load().same(d.ID)
}
