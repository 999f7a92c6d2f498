package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
)

func init() {
	driver.Register("postgres", openURL)
	driver.Register("postgresql", openURL)
}

// opened is a Store with its own pool.
type opened struct{ *Store }

func (o opened) Close() error {
	o.pool.Close()
	return nil
}

// openURL is the [driver.Opener] of postgres://user:password@host:port/database.
func openURL(ctx context.Context, dsn string, use driver.Options) (driver.Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("pgstore: not an address of PostgreSQL, want postgres://user:password@host:port/database") // err may hold the password
	}
	if u, err := url.Parse(dsn); err == nil && !u.Query().Has("pool_max_conns") {
		// A Keeper makes one call at a time, every few minutes.
		config.MaxConns = 2
	}
	if u, err := url.Parse(dsn); err == nil && !u.Query().Has("pool_max_conn_idle_time") {
		config.MaxConnIdleTime = 30 * time.Second
		config.HealthCheckPeriod = 30 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	s, err := New(pool, optionFunc(func(s *Store) { s.asked = use.Nodes }))
	if err != nil {
		pool.Close()
		return nil, err
	}
	return opened{s}, nil
}
