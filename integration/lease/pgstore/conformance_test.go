package pgstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
)

var tables atomic.Int64

func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// harness makes each storage a table of its own.
func harness(pool *pgxpool.Pool) leasetest.Harness {
	return leasetest.Harness{
		KnowsTime: true,
		New: func(testing.TB) leasetest.Open {
			table := fmt.Sprintf("leases_%d", tables.Add(1))
			return func(nodes driver.NodeRange) (lease.Store, error) { return open(pool, table, nodes) }
		},
	}
}

func open(pool *pgxpool.Pool, table string, nodes driver.NodeRange) (*pgstore.Store, error) {
	return pgstore.New(pool, pgstore.WithTable(table), pgstore.WithBlockSize(int(nodes.BlockSize)), pgstore.WithNodes(int(nodes.First), int(nodes.Nodes)))
}

func TestConformance(t *testing.T) {
	server := servers.PostgresForTest(t)
	leasetest.Run(t, harness(connect(t, server.DSN())))
}

func BenchmarkAcquire(b *testing.B) {
	server := servers.PostgresForTest(b)
	leasetest.MeasureAcquire(b, harness(connectWith(b, server.DSN(), func(c *pgxpool.Config) { c.MaxConns = 64 })))
}
