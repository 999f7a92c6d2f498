package pgstore

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
)

var tables atomic.Int64

func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	return connectWith(tb, dsn, func(*pgxpool.Config) {})
}

// harness makes each storage a table of its own.
func harness(pool *pgxpool.Pool) leasetest.Harness {
	return leasetest.Harness{
		KnowsTime: true,
		New: func(tb testing.TB) leasetest.Open {
			table := fmt.Sprintf("leases_%d", tables.Add(1))
			return func(nodes driver.NodeRange) (lease.Store, error) {
				if err := nodes.Check(); err != nil {
					return nil, err // what is missing here is not to be taken from the table
				}
				return open(tb, pool, nodes, pgstore.WithTable(table))
			}
		},
	}
}

// open opens a store with the settings of a pool until the end of the test.
func open(tb testing.TB, pool *pgxpool.Pool, nodes driver.NodeRange, opts ...pgstore.Option) (*pgstore.Store, error) {
	tb.Helper()
	s, err := pgstore.New(pool.Config(), nodes, opts...)
	if err == nil {
		tb.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func mustOpen(tb testing.TB, pool *pgxpool.Pool, nodes driver.NodeRange, opts ...pgstore.Option) *pgstore.Store {
	tb.Helper()
	s, err := open(tb, pool, nodes, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	server := servers.PostgresForTest(t)
	leasetest.Run(t, harness(connect(t, server.DSN())))
}

func BenchmarkAcquire(b *testing.B) {
	server := servers.PostgresForTest(b)
	crowd.Measure(b, harness(connectWith(b, server.DSN(), func(c *pgxpool.Config) { c.MaxConns = 64 })), nil)
}
