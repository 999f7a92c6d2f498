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
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Behind pgbouncer in transaction mode, a session has what other clients left in it. All
// clients of one URL have one store.
func TestSettingsOfOtherClients(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	admin := server.Connect(t)
	execute(t, admin, "CREATE SCHEMA other")
	front := pgbouncer(t, server.DSN())
	ctx := context.Background()
	leave := func(sql string) {
		t.Helper()
		other, err := pgx.Connect(ctx, front+"&default_query_exec_mode=exec")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close(ctx) }()
		if _, err := other.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	leftovers := []string{
		"SET search_path = other",
		"CREATE TEMP TABLE traceflake_store (what text)",
		"SET search_path = public; SET client_min_messages = error",
		"SET search_path = missing",
	}
	leave(leftovers[0]) // before the store is created, too
	d := processes.Store(front).Create(t, few)
	if n := value[int](t, admin, "SELECT count(*) FROM public.traceflake_store"); n != 2 {
		t.Errorf("%d rows, want the configuration and a page", n)
	}
	granted := map[uint32]bool{}
	for i, sql := range leftovers {
		leave(sql)
		schema := ""
		if i == 0 {
			schema = "&search_path=public" // which pgbouncer would refuse
		}
		s := processes.Store(front + schema).Client(t)
		if got, err := s.Describe(ctx); err != nil || got.ID != d.ID {
			t.Errorf("after %q: the store %q, %v; want %s", sql, got.ID, err, d.ID)
		}
		g, err := s.Acquire(ctx, calls.Request(time.Now()))
		if err != nil || granted[g.Node] {
			t.Errorf("after %q: granted %+v (%v); granted before: %v", sql, g, err, granted)
		}
		granted[g.Node] = true
	}
}

// Through pgbouncer in transaction mode, with fewer sessions than clients.
func TestObjectsThroughPgbouncer(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	leasetest.Run(t, storages(pgbouncer(t, server.DSN()), server.Connect(t)))
}

// pgbouncer returns the DSN of a database through pgbouncer.
func pgbouncer(t *testing.T, dsn string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		const why = "pgbouncer is not installed; install the Debian package pgbouncer"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	backend, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := backend.User.Password()
	bouncer := &child.Server{Name: "pgbouncer"}
	//nolint:usetesting // t.TempDir is for this user only
	bouncer.Dir, err = os.MkdirTemp("", "pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	ini := filepath.Join(bouncer.Dir, "pgbouncer.ini")
	front := func() string {
		return fmt.Sprintf("postgres://any:none@%s%s?sslmode=disable", bouncer.Address,
			backend.Path)
	}
	bouncer.Answers = func(ctx context.Context) error { return ping(ctx, front()) }
	bouncer.Command = func() *exec.Cmd {
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
`, backend.Hostname(), backend.Port(), backend.User.Username(), password, bouncer.Port())
		err := os.WriteFile(ini, []byte(text), 0o600)
		command := child.Foreign(path, ini)
		if os.Geteuid() == 0 { // which pgbouncer refuses
			const nobody = 65534
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody,
				Gid: nobody}}
			err = errors.Join(err, os.Chown(bouncer.Dir, nobody, nobody),
				os.Chown(ini, nobody, nobody))
		}
		if err != nil {
			t.Error(err)
		}
		return command
	}
	child.ForTest(t,
		func(ctx context.Context) (*child.Server, error) { return bouncer, bouncer.Start(ctx) })
	return front()
}
