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

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Through pgbouncer in transaction mode, with fewer sessions than clients. The settings of sessions
// change how things look or work: they are the database's, or what other clients left behind.
func TestObjectsThroughPgbouncer(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	front, admin := pgbouncer(t, server.DSN()), server.Connect(t)
	for setting, value := range map[string]string{
		"search_path":                   "missing",
		"default_transaction_isolation": "serializable",
		"datestyle":                     "German",
		"timezone":                      "'Asia/Kathmandu'",
		"bytea_output":                  "escape",
		"synchronous_commit":            "off",
		"client_min_messages":           "error",
	} {
		set(t, admin, setting, value)
	}
	leasetest.Run(t, storages(front, admin))
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
