//go:build unix

package cmd_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// On a real PostgreSQL the doctor is not green where a service would get no lease, says why, and
// its advice loses nothing.
func TestDoctorOnPostgres(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	path, secret := child.Build(t, child.Traceflake), filepath.Join(t.TempDir(), "secret")
	conn := server.Connect(t)
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	as := func(user string) string {
		scheme, rest, _ := strings.Cut(server.DSN(), "://")
		_, host, _ := strings.Cut(rest, "@")
		return scheme + "://" + user + "@" + host
	}
	doctor := func(store string, want ...string) {
		t.Helper()
		out := child.Output(t, min(len(want), 1), exec.CommandContext(t.Context(), path, "doctor",
			"--store", store, "--secret-file", secret))
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("the doctor does not say %q:\n%s", text, out)
			}
		}
	}
	child.Output(t, 0, exec.CommandContext(t.Context(), path, "lease", "create", "--store",
		server.DSN(), "--secret-file", secret))
	execute("CREATE ROLE reader LOGIN PASSWORD 'word'; GRANT SELECT ON traceflake_store TO " +
		"reader;CREATE ROLE service LOGIN PASSWORD 'word'; GRANT SELECT, UPDATE ON " +
		"traceflake_store TO service")
	t.Cleanup(func() {
		execute("DROP OWNED BY reader, service; DROP ROLE reader; DROP ROLE service")
	})
	doctor(as("service:word"))
	doctor(as("reader:word"), "WRONG  store", "permission denied",
		"SELECT and UPDATE on traceflake_store")
	doctor(as("reader:wrong"), "password authentication failed", "→ correct user and password")
	execute("ALTER ROLE service SET default_transaction_read_only = on")
	doctor(as("service:word"), "read-only", "→ connect to the primary")
	execute("ALTER ROLE service RESET default_transaction_read_only")
	execute("BEGIN; TRUNCATE traceflake_store; COMMIT")
	doctor(as("service:word"), "no lease store exists here",
		"never created, or that was interrupted: traceflake lease create", "Changing the store")
	execute("DROP TABLE traceflake_store CASCADE")
	doctor(as("service:word"), "no lease store exists here", "Changing the store")
}
