//go:build unix

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/pgstore"
)

var wantError = calls.WantError("pgstore", "hunter2")

// counter counts statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func connectWith(tb testing.TB, dsn string, change func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	change(config)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// Those of a process, and how many requests a fleet makes with them, are in docs/operating.md.
func TestRequests(t *testing.T) {
	server := servers.PostgresForTest(t)
	var statements counter
	created(t, connect(t, server.DSN()), driver.AllNodes)
	s := open(t, connectWith(t, server.DSN(), func(c *pgxpool.Config) { c.ConnConfig.Tracer = &statements }))
	ctx, now := context.Background(), time.Now()
	var g lease.Grant
	again := calls.Request(now)
	for _, c := range []struct {
		what string
		want int64
		call func() error
	}{
		{"the first describe", 2, func() error { _, err := s.Describe(ctx); return err }}, // where is it, and what?
		{"acquire", 1, func() error { _, err := s.Acquire(ctx, again); return err }},
		{"acquire again, without an answer to the first", 1, func() (err error) { g, err = s.Acquire(ctx, again); return err }},
		{"renew", 1, func() (err error) {
			g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
			return err
		}},
		{"get", 1, func() error { _, err := s.Get(ctx, g.Node); return err }},
		{"release", 1, func() error { return s.Release(ctx, g, lease.NewNonce(), now) }},
		{"describe", 1, func() error { _, err := s.Describe(ctx); return err }},
		{"list", 2, func() error { _, err := s.List(ctx); return err }},
		{"add secret", 1, func() error { return s.AddSecret(ctx, "0123456789abcdef") }},
		{"raise", 4, func() error { _, err := s.Raise(ctx, now); return err }}, // begin, commit, and two between
	} {
		before := statements.n.Load()
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got := statements.n.Load() - before; got != c.want {
			t.Errorf("%s: %d statements, want %d", c.what, got, c.want)
		}
	}
}

// A grant says which write of which block it is. The block's end and owner are those of the row.
func TestGrantUnlikeTheRow(t *testing.T) {
	s, ctx := created(t, connect(t, servers.PostgresForTest(t).DSN()), few), context.Background()
	r := calls.Request(time.Now())
	r.Owner = "a"
	g, err := s.Acquire(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*lease.Grant){
		"end":   func(g *lease.Grant) { g.End = g.Start },
		"owner": func(g *lease.Grant) { g.Owner = "b" },
	} {
		other := g
		change(&other)
		renewed, err := s.Renew(ctx, other, lease.Request{Nonce: lease.NewNonce(), Now: r.Now, TTL: time.Second})
		if err != nil || !renewed.End.Equal(g.End) || renewed.Owner != g.Owner {
			t.Fatalf("renew with another %s: got %+v, %v; want the end and owner of %+v", what, renewed, err, g)
		}
		g = renewed
	}
}

// Settings of a database or role that change how things look or work.
func TestConformanceUnderOtherSettings(t *testing.T) {
	server := servers.PostgresForTest(t)
	pool := connectWith(t, server.DSN(), func(c *pgxpool.Config) {
		for name, v := range map[string]string{
			"default_transaction_isolation": "serializable",
			"datestyle":                     "German",
			"timezone":                      "Asia/Kathmandu",
			"bytea_output":                  "escape",
			"synchronous_commit":            "off",
			"search_path":                   "public",
			"client_min_messages":           "error",
		} {
			c.ConnConfig.RuntimeParams[name] = v
		}
	})
	leasetest.Run(t, harness(pool, connect(t, server.DSN())))
}

// Through pgbouncer in transaction mode, with fewer sessions than clients.
func TestConformanceThroughPgbouncer(t *testing.T) {
	server := servers.PostgresForTest(t)
	leasetest.Run(t, harness(connect(t, pgbouncer(t, server.DSN())), connect(t, server.DSN())))
}

func pgbouncer(t *testing.T, dsn string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("pgbouncer is not installed; install the Debian package pgbouncer")
		}
		t.Skip("pgbouncer is not installed; install the Debian package pgbouncer")
	}
	backend, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := backend.User.Password()
	addresses, err := child.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addresses[0], ":")
	dir, err := os.MkdirTemp("", "pgbouncer-") //nolint:usetesting // t.TempDir is for this user only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
server_reset_query_always = 0
`, backend.Hostname(), backend.Port(), backend.User.Username(), password, port)
	if err := os.WriteFile(ini, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := child.Foreign(path, ini)
	if os.Geteuid() == 0 { // which pgbouncer refuses
		const nobody = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chown(ini, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	bouncer := child.New("pgbouncer", func() *exec.Cmd { return command })
	if err := bouncer.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bouncer.Stop() })
	front := fmt.Sprintf("postgres://any:none@%s%s?sslmode=disable", addresses[0], backend.Path)
	if err := answers(front, bouncer); err != nil {
		t.Fatal(err)
	}
	return front
}

func use(s driver.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.Acquire(ctx, calls.Request(time.Now()))
	return err
}

func execute(tb testing.TB, pool *pgxpool.Pool, sql string) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

func TestBadOptions(t *testing.T) {
	_, err := pgstore.New(nil)
	wantError(t, "no configuration", err, lease.ErrInvalidRequest, "configuration")
	for url, text := range map[string]string{
		"postgres://user:hunter2@host:port/":                  "invalid port",
		"postgres://user:%hunter2@host/db":                    "special characters of the password",
		"postgres://user:hunter2@localhost/?sslmode=perhaps":  "sslmode is invalid",
		"postgres://user:hunter2@host/db?search_path=a,b":     "search_path",
		"postgres://user:hunter2@host/db?connect_timeout=now": "connect_timeout",
	} {
		_, err := driver.Open(url)
		wantError(t, text, err, lease.ErrInvalidRequest, text)
	}
}
