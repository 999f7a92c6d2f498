package pgstore

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
)

var schemas atomic.Int64

func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	return connectWith(tb, dsn, func(*pgxpool.Config) {})
}

// harness has each store in a schema of its own, which admin creates.
func harness(pool, admin *pgxpool.Pool) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Storage {
		config, schema := pool.Config(), fmt.Sprintf("leases_%d", schemas.Add(1))
		config.ConnConfig.RuntimeParams["search_path"] = schema
		execute(tb, admin, "CREATE SCHEMA "+schema)
		return leasetest.Storage{
			Open: func() (driver.Store, error) { return pgstore.New(config) },
			Delete: func() error {
				_, err := admin.Exec(context.Background(), fmt.Sprintf("DROP TABLE %s.traceflake_leases, %[1]s.traceflake_leases_store", schema))
				return err
			},
		}
	}}
}

// open opens a store with the settings of a pool until the end of the test.
func open(tb testing.TB, pool *pgxpool.Pool) *pgstore.Store {
	tb.Helper()
	s, err := pgstore.New(pool.Config())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// created is a store with the settings of a pool, with nodes in blocks of a size, until the end of the test.
func created(tb testing.TB, pool *pgxpool.Pool, nodes driver.NodeRange) *pgstore.Store {
	tb.Helper()
	s := open(tb, pool)
	create(tb, s, leasetest.Nodes(nodes))
	return s
}

// create creates the store that d describes, and returns its description.
func create(tb testing.TB, s driver.Store, d lease.Description) lease.Description {
	tb.Helper()
	return leasetest.Storage{Open: func() (driver.Store, error) { return leftOpen{s}, nil }}.Create(tb, d)
}

type leftOpen struct{ driver.Store }

func (leftOpen) Close(context.Context) error { return nil }

func TestConformance(t *testing.T) {
	server := servers.PostgresForTest(t)
	pool := connect(t, server.DSN())
	leasetest.Run(t, harness(pool, pool))
}

// relayed returns the DSN of a server through a proxy.
func relayed(tb testing.TB, dsn string) (*leasetest.Cutter, string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	c := leasetest.NewCutter(tb, u.Host)
	u.Host = c.Address()
	return c, u.String()
}
