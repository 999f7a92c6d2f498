package pgstore_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// server returns the URL of a PostgreSQL in which the tests may create databases and roles.
func server(tb testing.TB) string {
	tb.Helper()
	return calls.Server(tb, "TRACEFLAKETEST_POSTGRES", "postgres://user:password@host/database, "+
		"where the tests may create databases and roles")
}

// database returns the URL of a new database, which is dropped when the test ends.
func database(tb testing.TB) string {
	tb.Helper()
	u, err := url.Parse(server(tb))
	if err != nil {
		tb.Fatal(err)
	}
	admin, name := u.String(), "traceflake_"+strings.ToLower(rand.Text())
	run := func(sql string) {
		conn, err := pgx.Connect(context.Background(), admin)
		if err == nil {
			_, err = conn.Exec(context.Background(), sql)
			_ = conn.Close(context.Background())
		}
		if err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
	run("CREATE DATABASE " + name)
	tb.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// connect returns a pool for a database, with the settings of parameters.
func connect(tb testing.TB, dsn string, parameters map[string]string) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	for name, v := range parameters {
		config.ConnConfig.RuntimeParams[name] = v
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
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

// few has four blocks.
var few = lease.Description{ID: calls.ID, Nodes: 1 << 17, BlockSize: 1 << 15,
	LongestTTL: lease.MaxTTL}

// open opens a store with the settings of a pool until the end of the test.
func open(tb testing.TB, pool *pgxpool.Pool) stores.Store {
	tb.Helper()
	s, err := pgstore.New(pool.Config())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// created is a store of few nodes with the settings of a pool, until the end of the test.
func created(tb testing.TB, pool *pgxpool.Pool) stores.Store {
	tb.Helper()
	s := open(tb, pool)
	if err := s.Create(tb.Context(), few); err != nil {
		tb.Fatal(err)
	}
	return s
}

var wantError = calls.WantError("", "hunter2")

// The contract of Objects, on a real server.
func TestObjects(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		dsn := database(tb)
		admin := connect(tb, dsn, nil)
		u, err := url.Parse(dsn)
		if err != nil {
			tb.Fatal(err)
		}
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: u.Host,
			Open: func(address string) (driver.Objects, error) {
				u.Host = address
				return pgstore.Objects(tb, u.String()), nil
			},
			Delete: func(name string) error {
				_, err := admin.Exec(context.Background(),
					"DELETE FROM traceflake_store WHERE name = $1", name)
				return err
			},
		}
	})
}

// The view shows the store's blocks.
func TestView(t *testing.T) {
	pool := connect(t, database(t), nil)
	s := created(t, pool)
	r := calls.Request(time.Now())
	r.Owner = `pod "é" \n {"Node":1}`
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(t.Context(),
		`SELECT node, granted_from, granted_until, nonce, owner, version
		FROM traceflake_leases WHERE granted_until > now()`)
	if err != nil {
		t.Fatal(err)
	}
	type block struct {
		Node                      uint32
		GrantedFrom, GrantedUntil time.Time
		Nonce, Owner              string
		Version                   uint64
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[block])
	got.GrantedFrom, got.GrantedUntil = got.GrantedFrom.UTC(), got.GrantedUntil.UTC()
	if want := (block{g.Node, g.Start, g.End, g.Nonce, r.Owner, g.Version}); err != nil ||
		got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	config := connect(t, database(t), nil).Config()
	calls.Restored(t, func() (stores.Store, error) { return pgstore.New(config) })
}
