// Package pgstore has the tests of lease/pgstore that need leasetest, kill, stop and reconfigure a
// server, cut its network, or start pgbouncer in front of it. The others are in the store's package.
package pgstore

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/lease/leasetest"
	_ "github.com/traceflake/traceflake/lease/pgstore"
)

// few has four blocks.
var few = driver.NodeRange{First: 0, Nodes: 1 << 17, BlockSize: 1 << 15}

var wantError = calls.WantError("pgstore: ")

func storage(dsn string) leasetest.Storage {
	return leasetest.Storage{Open: func() (driver.Store, error) { return driver.Open(dsn) }}
}

var schemas atomic.Int64

// harness has each store in a schema of its own, which admin creates.
func harness(dsn string, admin *pgx.Conn) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Storage {
		schema := fmt.Sprintf("leases_%d", schemas.Add(1))
		execute(tb, admin, "CREATE SCHEMA "+schema)
		s := storage(dsn + "&search_path=" + schema)
		s.Delete = func() error {
			_, err := admin.Exec(context.Background(), fmt.Sprintf("DROP TABLE %s.traceflake_leases, %[1]s.traceflake_leases_store", schema))
			return err
		}
		return s
	}}
}

func value[T any](tb testing.TB, conn *pgx.Conn, sql string) T {
	tb.Helper()
	var v T
	if err := conn.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func execute(tb testing.TB, conn *pgx.Conn, sql string) {
	tb.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

// relayed returns the DSN of a server through a proxy.
func relayed(tb testing.TB, dsn string) (*pagestest.Proxy, string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	c := pagestest.NewProxy(tb, u.Host)
	u.Host = c.Address()
	return c, u.String()
}
