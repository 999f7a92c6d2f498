package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
)

func init() {
	driver.Register("postgres", openURL)
	driver.Register("postgresql", openURL)
}

// openURL is the [driver.Opener] of postgres://user:password@host:port/database.
func openURL(_ context.Context, dsn string, use driver.Options) (driver.Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("pgstore: not an address of PostgreSQL, want postgres://user:password@host:port/database") // err may hold the password
	}
	s, err := New(config, use.Nodes)
	if err != nil {
		return nil, err
	}
	return s, nil
}
