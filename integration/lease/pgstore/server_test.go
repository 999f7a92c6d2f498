//go:build unix

package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
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

var wantError = calls.WantError("pgstore", "secret")

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

func TestStatementsOfACall(t *testing.T) {
	server := servers.PostgresForTest(t)
	var statements counter
	pool := connectWith(t, server.DSN(), func(c *pgxpool.Config) { c.ConnConfig.Tracer = &statements })
	s := mustOpen(t, pool, driver.NodeRange{})
	ctx, now := context.Background(), time.Now()
	var g lease.Grant
	again := calls.Request(now)
	for _, c := range []struct {
		what string
		want int64
		call func() error
	}{
		{"acquire, the first call", 5, func() (err error) { // is there a table, make it, and now?
			g, err = s.Acquire(ctx, calls.Request(now))
			return err
		}},
		{"acquire", 2, func() error {
			_, err := s.Acquire(ctx, again)
			return err
		}},
		{"renew", 1, func() (err error) {
			g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
			return err
		}},
		{"acquire again, without an answer to the first", 2, func() error { _, err := s.Acquire(ctx, again); return err }},
		{"get", 1, func() error { _, err := s.Get(ctx, g.Node); return err }},
		{"release", 1, func() error { return s.Release(ctx, g, lease.NewNonce(), now) }},
		{"raise", 2, func() error { return s.Raise(ctx, now) }},
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

// Settings of a database or role that change how things look or work.
func TestConformanceUnderOtherSettings(t *testing.T) {
	server := servers.PostgresForTest(t)
	pool := connectWith(t, server.DSN(), func(c *pgxpool.Config) {
		c.MaxConns = 16
		for name, v := range map[string]string{
			"default_transaction_isolation": "serializable",
			"datestyle":                     "German",
			"timezone":                      "Asia/Kathmandu",
			"bytea_output":                  "escape",
			"synchronous_commit":            "off",
			"search_path":                   "elsewhere, public",
		} {
			c.ConnConfig.RuntimeParams[name] = v
		}
	})
	leasetest.Run(t, harness(pool))
}

// Through pgbouncer in transaction mode, with fewer sessions than clients.
func TestConformanceThroughPgbouncer(t *testing.T) {
	server := servers.PostgresForTest(t)
	leasetest.Run(t, harness(connectWith(t, pgbouncer(t, server.DSN()), func(c *pgxpool.Config) { c.MaxConns = 16 })))
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

func use(s *pgstore.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := s.Acquire(ctx, calls.Request(time.Now()))
	return err
}

func TestServersThatDoNotServe(t *testing.T) {
	server := servers.PostgresForTest(t)
	admin := connect(t, server.DSN())
	as := func(role string) *pgstore.Store {
		t.Helper()
		run := func(sql string) { execute(t, admin, sql) }
		run("DROP ROLE IF EXISTS " + role)
		run("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'")
		u, err := url.Parse(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, "secret")
		return mustOpen(t, connect(t, u.String()), driver.NodeRange{})
	}
	t.Cleanup(func() {
		execute(t, admin, "DROP TABLE IF EXISTS traceflake_leases")
		execute(t, admin, "DROP OWNED BY traceflake_none, traceflake_reader, traceflake_user")
		execute(t, admin, "DROP ROLE traceflake_none, traceflake_reader, traceflake_user")
	})

	wantError(t, "no right to make the table", use(as("traceflake_none")), nil, "permission denied", "CREATE")

	// Made by an operator, as Schema says; the role has no more than it needs.
	s := mustOpen(t, admin, driver.NodeRange{})
	execute(t, admin, s.Schema())
	execute(t, admin, s.Schema())
	reader, user := as("traceflake_reader"), as("traceflake_user")
	execute(t, admin, "GRANT SELECT ON traceflake_leases TO traceflake_reader")
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_leases TO traceflake_user")
	wantError(t, "no right to write", use(reader), nil, "permission denied", "UPDATE")
	if err := use(user); err != nil {
		t.Errorf("with SELECT and UPDATE: %v", err)
	}

	readOnly := connectWith(t, server.DSN(), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	s = mustOpen(t, readOnly, driver.NodeRange{})
	wantError(t, "a standby", use(s), nil, "connect to the primary")
	_, err := s.Get(context.Background(), 0)
	wantError(t, "get from a standby", err, nil, "connect to the primary")

	wrong, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword("traceflake_user", "not the secret")
	s = mustOpen(t, connect(t, wrong.String()), driver.NodeRange{})
	wantError(t, "a wrong password", use(s), nil, "traceflake_user")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wrong.Host = l.Addr().String()
	s = mustOpen(t, connect(t, wrong.String()), driver.NodeRange{})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Acquire(ctx, calls.Request(time.Now()))
	wantError(t, "a server that says nothing", err, context.DeadlineExceeded)
	_ = l.Close()
	wantError(t, "a dead server", use(s), nil, "refused")
}

func execute(tb testing.TB, pool *pgxpool.Pool, sql string) {
	tb.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

func TestTablesOfAnotherKind(t *testing.T) {
	server := servers.PostgresForTest(t)
	pool := connect(t, server.DSN())
	good := mustOpen(t, pool, driver.NodeRange{}, pgstore.WithTable("good"))
	execute(t, pool, good.Schema())
	for _, c := range []struct {
		name, sql string
		want      error
		texts     []string
	}{
		{"newer", "CREATE TABLE %s (what text); COMMENT ON TABLE %[1]s IS 'traceflake leases, schema 2, in a new way'", lease.ErrSchemaVersion, []string{"schema 2", "supports 1"}},
		{"customers", "CREATE TABLE %s (id text); COMMENT ON TABLE %[1]s IS 'our customers'", lease.ErrSchemaVersion, []string{"our customers"}},
		{"uncommented", "CREATE TABLE %s (LIKE good INCLUDING ALL)", lease.ErrSchemaVersion, []string{"comment"}},
		{"larger", "CREATE TABLE %s (); COMMENT ON TABLE %[1]s IS 'traceflake leases, schema 1, blocks of 16 nodes'", lease.ErrBlockSize, []string{"16 nodes, not 8"}},
		{"strange", "CREATE TABLE %s (); COMMENT ON TABLE %[1]s IS 'traceflake leases, schema 1, blocks of many nodes'", lease.ErrSchemaVersion, []string{"many"}},
	} {
		execute(t, pool, fmt.Sprintf(c.sql, c.name))
		s := mustOpen(t, pool, driver.NodeRange{BlockSize: 8}, pgstore.WithTable(c.name))
		wantError(t, c.name, use(s), c.want, append(c.texts, c.name)...)
		_, err := s.List(context.Background())
		wantError(t, c.name+": list", err, c.want)
	}

	if err := use(good); err != nil {
		t.Fatal(err)
	}
	execute(t, pool, "DELETE FROM good WHERE node = 0")
	_, err := good.Get(context.Background(), 0)
	wantError(t, "a deleted row", err, nil, "missing")
	wantError(t, "raise with a deleted row", good.Raise(context.Background(), time.Now()), nil, "missing")
	execute(t, pool, "DROP TABLE good")
	wantError(t, "a dropped table", use(good), nil, "dropped")

	execute(t, pool, "CREATE SCHEMA other")
	for _, name := range []string{"other.leases", "Mixed_Case", "a123456789a123456789a123456789a123456789a123456789"} {
		s := mustOpen(t, pool, driver.NodeRange{}, pgstore.WithTable(name))
		if err := use(s); err != nil {
			t.Errorf("table %s: %v", name, err)
		}
	}
	if n := value[int](t, pool, "SELECT count(*) FROM other.leases"); n != driver.AllNodes.Blocks() {
		t.Errorf("%d rows, want %d", n, driver.AllNodes.Blocks())
	}
}

func TestBadOptions(t *testing.T) {
	pool := connect(t, "postgres://nobody@127.0.0.1:1/none") // does not connect
	for _, name := range []string{"", "a b", "a.b.c", "1a", ".a", "a.", "x; DROP TABLE x", `"x"`, strings.Repeat("x", 51)} {
		_, err := pgstore.New(pool.Config(), driver.NodeRange{}, pgstore.WithTable(name))
		wantError(t, "table "+name, err, lease.ErrInvalidRequest, "table")
	}
	_, err := pgstore.New(pool.Config(), driver.NodeRange{BlockSize: 3})
	wantError(t, "block size", err, lease.ErrInvalidRequest, "power of two")
	_, err = pgstore.New(pool.Config(), driver.NodeRange{First: 4, Nodes: 8, BlockSize: 8})
	wantError(t, "nodes", err, lease.ErrInvalidRequest, "multiples")
	_, err = pgstore.New(nil, driver.NodeRange{})
	wantError(t, "no configuration", err, lease.ErrInvalidRequest, "configuration")
}
