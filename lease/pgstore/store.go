package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// store keeps leases in two tables of a PostgreSQL database.
type store struct {
	pool   *pgxpool.Pool
	schema string                      // of the tables
	used   atomic.Pointer[description] // of the store in use; nil until it has been read
}

var _ driver.Store = (*store)(nil)

func init() {
	driver.Register("postgres", openURL)
	driver.Register("postgresql", openURL)
}

// openURL is the [driver.Opener] of postgres://user:password@host:port/database.
func openURL(dsn string) (driver.Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// The error contains the URL; where its parts are unclear, also the password.
		text := "want postgres://user:password@host:port/database, with special characters of the password as %XX"
		if _, why, ok := strings.Cut(err.Error(), "`: "); ok && !strings.Contains(why, "failed to parse as URL") {
			text = why
		}
		return nil, fmt.Errorf("pgstore: %w: the URL: %s", lease.ErrInvalidRequest, text)
	}
	return New(config)
}

// New returns a store with at most two connections of its own, which it closes after 30 s without a
// call. config is that of [pgxpool.ParseConfig], or of the program's own pool: pool.Config(). Its
// search_path is the schema of the tables, by default public. New does not connect. The store is safe for concurrent
// use. Errors of invalid arguments wrap [lease.ErrInvalidRequest].
//
// The store needs connections of its own to see the server's warnings: the server reports a commit
// that was not replicated only as a warning.
func New(config *pgxpool.Config) (driver.Store, error) {
	if config == nil {
		return nil, fmt.Errorf("pgstore: %w: no configuration", lease.ErrInvalidRequest)
	}
	config = config.Copy()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 2
	config.MaxConnIdleTime, config.HealthCheckPeriod = 30*time.Second, 30*time.Second
	prepare(config.ConnConfig)
	settings := config.ConnConfig.RuntimeParams
	schema := cmp.Or(strings.Trim(settings["search_path"], ` "`), "public")
	delete(settings, "search_path") // pgbouncer refuses it, and no statement relies on it
	if strings.Contains(schema, ",") {
		return nil, fmt.Errorf("pgstore: %w: search_path is %s, want the one schema of the tables", lease.ErrInvalidRequest, schema)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	return &store{pool: pool, schema: schema}, nil
}

// Close implements [driver.Store]. It waits for calls and closes the connections. When ctx ends,
// those to a server that does not respond are closed in the background, within 15 s.
func (s *store) Close(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pgstore: close: %w", ctx.Err())
	}
}

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
