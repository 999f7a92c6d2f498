package pgstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
)

// server returns the URL of a PostgreSQL in which the tests may create databases and roles.
func server(tb testing.TB) string {
	tb.Helper()
	return calls.Server(tb, "TRACEFLAKETEST_POSTGRES", "postgres://user:password@host/database?"+
		"sslmode=…, where the tests may create databases and roles")
}

// newName returns a name that needs no quotes.
func newName() string { return "traceflake_" + strings.ToLower(rand.Text()) }

// newDatabase returns a database that is dropped when the test ends.
func newDatabase(tb testing.TB) (dsn string, admin *pgxpool.Pool) {
	tb.Helper()
	u, err := url.Parse(server(tb))
	if err != nil {
		tb.Fatal(err)
	}
	other, name := connect(tb, u.String()), newName()
	execute(tb, other, "CREATE DATABASE "+name)
	tb.Cleanup(func() { execute(tb, other, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String(), connect(tb, u.String())
}

// newRole returns a role with the password hunter2 that is dropped when the test ends.
func newRole(tb testing.TB, admin *pgxpool.Pool) (name string) {
	tb.Helper()
	name = newName()
	execute(tb, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'hunter2'")
	tb.Cleanup(func() { execute(tb, admin, "DROP OWNED BY "+name+" CASCADE; DROP ROLE "+name) })
	return name
}

func connect(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func value[T any](tb testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func execute(tb testing.TB, pool *pgxpool.Pool, sql string) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

func write(tb testing.TB, o driver.Objects, name, data, version string) driver.Object {
	tb.Helper()
	written, err := calls.Write(context.Background(), o, name, data, version)
	if err != nil {
		tb.Fatalf("write %s: %v", name, err)
	}
	return written
}

var wantError = calls.WantError("", "hunter2")

// The contract of Objects, on a real server.
func TestObjects(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		dsn, admin := newDatabase(tb)
		u, err := url.Parse(dsn)
		if err != nil {
			tb.Fatal(err)
		}
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: u.Host,
			Open: func(address string) (driver.Objects, error) {
				u.Host = address
				return calls.Objects(tb, u.String()), nil
			},
			Delete: func(name string) error {
				_, err := admin.Exec(context.Background(),
					"DELETE FROM traceflake_store WHERE name = $1", name)
				return err
			},
		}
	})
}

// The view shows the store's blocks, whose ends are later if the holder's clock is behind.
func TestView(t *testing.T) {
	_, admin := newDatabase(t)
	s, err := pgstore.New(admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d, err := s.Create(t.Context(), lease.Description{Nodes: 8, LongestTTL: lease.MaxTTL},
		calls.Secret())
	if err != nil {
		t.Fatal(err)
	}
	r := calls.Request(d.ID, time.Now().Add(-time.Hour))
	r.Owner = `pod "é" \n {"Node":1}`
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := value[string](t, admin, `SELECT string_agg(concat_ws(' ', node,
			extract(epoch FROM granted_from)::bigint, extract(epoch FROM granted_until)::bigint,
			nonce, owner, version), '; ')
		FROM traceflake_leases WHERE granted_until > now()`)
	if want := fmt.Sprintf("%d %d %d %s %s %d", g.Node, g.Start.Unix(),
		g.End.Add(g.Behind).Unix(), g.Nonce, r.Owner, g.Version); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
