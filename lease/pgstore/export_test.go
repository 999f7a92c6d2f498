package pgstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
)

// Objects returns those at a URL until the end of the test.
func Objects(tb testing.TB, dsn string) driver.Objects {
	tb.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	o, err := newObjects(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = o.Close() })
	return o
}
