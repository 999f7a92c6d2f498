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

// tables are the two tables of a store. A client uses those that it found first, by their full
// names and with the store's ID as a condition of every write.
type tables struct {
	schema            string
	lease.Description           // as it was at now
	now               time.Time // by the server's clock
}

// sql fills in the full names of the tables. No statement relies on the server's
// search path: behind pgbouncer it may be another client's.
func (t *tables) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{t.schema}.Sanitize())
}

// same returns an error if a store with this ID is another one.
func (t *tables) same(id string) error {
	if id != t.ID {
		return fmt.Errorf("%w: it has the ID %q, and had %s", lease.ErrReplaced, id, t.ID)
	}
	return nil
}

// open returns the store in use. Its nodes and longest TTL never change.
func (s *store) open(ctx context.Context) (*tables, error) {
	if t := s.used.Load(); t != nil {
		return t, nil
	}
	return s.describe(ctx)
}

// describe reads the description of the store in use, or of the one that it finds.
func (s *store) describe(ctx context.Context) (t *tables, err error) {
	err = s.session(ctx, func(c *pgx.Conn) (err error) {
		t, err = s.find(ctx, c)
		return err
	})
	return t, err
}

func (s *store) find(ctx context.Context, c *pgx.Conn) (*tables, error) {
	var t tables
	var err error
	if used := s.used.Load(); used != nil {
		t.schema = used.schema
	} else if t.schema, err = s.search(ctx, c); err != nil {
		return nil, err
	}
	var now, created, raised, ttl int64
	var rows, version int
	err = c.QueryRow(ctx, t.sql(describeSQL)).Scan(&rows, &now, &version,
		&t.ID, &created, &t.First, &t.Nodes, &t.BlockSize, &ttl, &raised, &t.Secrets)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	case rows != 1:
		return nil, fmt.Errorf("%w: traceflake_leases_store has %d rows, want one", lease.ErrSchemaVersion, rows)
	case version != schemaVersion:
		return nil, fmt.Errorf("%w: %d, this version of the library supports %d", lease.ErrSchemaVersion, version, schemaVersion)
	}
	t.now, t.Created, t.Raised, t.LongestTTL = time.UnixMicro(now), second(created), second(raised), time.Duration(ttl)*time.Second
	if err := driver.CheckDescription(t.Description); err != nil {
		return nil, fmt.Errorf("%w: traceflake_leases_store was edited: %w", lease.ErrSchemaVersion, err)
	}
	s.used.CompareAndSwap(nil, &t)
	return &t, s.used.Load().same(t.ID)
}

// search finds the schema of the only store that there is.
func (s *store) search(ctx context.Context, c *pgx.Conn) (schema string, err error) {
	var readable, other []string
	err = c.QueryRow(ctx, searchSQL, s.schema).Scan(&readable, &other)
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

// second is the time of a second since 1970, and the zero Time that of 0.
func second(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
