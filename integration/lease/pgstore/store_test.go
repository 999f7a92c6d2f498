//go:build unix

// Package pgstore has the tests of lease/pgstore that need leasetest, kill, stop and reconfigure a
// server, cut its network, or start pgbouncer in front of it. The others are in the store's
// package.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) { os.Exit(servers.OnePostgres(m)) }

var schemas atomic.Int64

// storages keeps objects in schemas of their own, which admin creates.
func storages(dsn string, admin *pgx.Conn) func(testing.TB) leasetest.Storage {
	return func(tb testing.TB) leasetest.Storage {
		schema := fmt.Sprintf("leases_%d", schemas.Add(1))
		execute(tb, admin, "CREATE SCHEMA "+schema)
		u, err := url.Parse(dsn + "&search_path=" + schema)
		if err != nil {
			tb.Fatal(err)
		}
		return leasetest.Storage{
			Server: u.Host,
			Open: func(address string) (driver.Objects, error) {
				u.Host = address
				return calls.Objects(tb, u.String()), nil
			},
			Delete: func(name string) error {
				_, err := admin.Exec(context.Background(),
					"DELETE FROM "+schema+".traceflake_store WHERE name = $1", name)
				return err
			},
		}
	}
}

func execute(tb testing.TB, conn *pgx.Conn, sql string) {
	tb.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

// set changes a setting of new sessions in the database.
func set(tb testing.TB, admin *pgx.Conn, setting, value string) {
	tb.Helper()
	execute(tb, admin, "ALTER DATABASE "+pgx.Identifier{admin.Config().Database}.Sanitize()+
		" SET "+setting+" = "+value)
}

// relayed returns the DSN of a server through a proxy.
func relayed(tb testing.TB, dsn string) (*network.Proxy, string) {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	c := network.NewProxy(tb, u.Host)
	u.Host = c.Address()
	return c, u.String()
}

// In every round the server crashes, which forgets each commit that did not wait for the disk, as
// is the default in this database; and an asynchronous standby is promoted, which lacks the commits
// of a second, while the old primary still serves half of the processes. Nobody fences it.
func TestProcesses(t *testing.T) {
	primary := child.ForTest(t, servers.StartPostgres)
	standby, replication := follow(t, primary)
	if err := primary.Exec(t.Context(),
		"ALTER DATABASE postgres SET synchronous_commit = off"); err != nil {
		t.Fatal(err)
	}
	moves, moving := relayed(t, primary.DSN())
	stays, staying := relayed(t, primary.DSN())
	redirect := func(p *network.Proxy) {
		p.Serve(primary.Address)
		p.Cut()
		p.Mend()
	}
	outages := 0
	processes.Run(t, func(during func()) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		outages++
		if outages%2 == 1 {
			for _, p := range []*network.Proxy{moves, stays} {
				p.Cut()
				defer p.Mend()
			}
			crashed := crash(primary.DSN())
			during()
			return errors.Join(crashed, primary.Wait(ctx))
		}
		replication.Cut()
		time.Sleep(time.Second)
		had, err := stored(ctx, primary)
		has, failed := stored(ctx, standby)
		if had == has {
			failed = errors.Join(failed, errors.New("the standby lacks nothing"))
		}
		old := primary
		primary = standby
		if err := errors.Join(err, failed, primary.Promote(ctx)); err != nil {
			return err
		}
		redirect(moves)
		during() // with two primaries
		stays.Cut()
		during()
		redirect(stays)
		standby, replication = follow(t, primary)
		return old.Stop()
	}, moving, staying)
}

// follow starts a standby of a primary, and a proxy between them.
func follow(t *testing.T, primary *servers.PostgresInstance) (*servers.PostgresInstance,
	*network.Proxy) {
	t.Helper()
	p := network.NewProxy(t, primary.Address)
	return child.ForTest(t, func(ctx context.Context) (*servers.PostgresInstance, error) {
		return primary.Standby(ctx, p.Address())
	}), p
}

// stored returns a hash of the pages at a server.
func stored(ctx context.Context, s *servers.PostgresInstance) (sum string, err error) {
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SELECT md5(string_agg(encode(data, 'hex'), ' ' ORDER BY name)) "+
		"FROM traceflake_store").Scan(&sum)
	return sum, err
}

// crash kills one of the server's processes, upon which it ends all others and
// recovers from its log.
func crash(dsn string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL)
}

// ping connects to a server.
func ping(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
