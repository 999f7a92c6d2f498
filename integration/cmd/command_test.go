// Package cmd runs the command line against real stores.
package cmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

func TestMain(m *testing.M) {
	s3.Main()
	kubernetes.Main(m)
}

const secret = "dffd6021bb2bd5b0af676290809ec3a5"

// program is the built command with its settings in the environment.
type program struct {
	path string
	env  []string
}

// run checks the command's exit code and returns its output.
func (p program) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command(p.path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("%q: code %d, want %d\n%s%s", args, got, code, out.String(), errOut.String())
	}
	if strings.Contains(out.String()+errOut.String(), secret) {
		t.Errorf("%q shows the secret", args)
	}
	return out.String()
}

// An operator's work with each of the stores: while a service holds a lease, the operator makes
// IDs, looks up who made an ID, and raises the store.
func TestStores(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	for name, url := range map[string]func(*testing.T) string{
		"PostgreSQL": func(t *testing.T) string { return servers.PostgresForTest(t).DSN() },
		"etcd": func(t *testing.T) string {
			return "etcd://" + strings.TrimPrefix(etcd.ForTest(t, 1).Endpoints()[0], "http://")
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := url(t)
			secretFile := filepath.Join(t.TempDir(), "secret")
			p := program{path, []string{setup.StoreVar + "=" + store, setup.SecretFileVar + "=" + secretFile}}

			p.run(t, 2, "lease", "list")
			p.run(t, 2, "lease", "raise")
			if name == "PostgreSQL" {
				checkEmpty(t, store)
			}
			p.run(t, 0, "lease", "create")
			p.run(t, 0, "lease", "create")
			if out := p.run(t, 0, "lease", "list"); out != "" {
				t.Errorf("a new store has leases:\n%s", out)
			}
			ids, err := setup.Config{Store: store, SecretFile: secretFile, TTL: time.Minute}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ids.Shutdown(context.Background()) }() // fails after the raise
			id, span := ids.NewIDs(t.Context())
			if ids.Fallbacks() > 0 {
				t.Fatal("the service has no lease")
			}

			keyring, err := setup.LoadKeyring(secretFile)
			if err != nil {
				t.Fatal(err)
			}
			node := traceid.Inspect(keyring, id).Parts.Node
			block := fmt.Sprintf("lease now block %d+8, held by ", node&^7)
			for _, text := range []string{id.String(), span.String()} {
				if out := p.run(t, 0, "inspect", text); !strings.Contains(out, block) {
					t.Errorf("inspect prints\n%s", out)
				}
			}
			made := strings.Fields(p.run(t, 0, "new", "-n", "3"))
			p.run(t, 0, append([]string{"verify", id.String()}, made...)...)
			p.run(t, 1, "verify", strings.Repeat("1", 32))
			if out := p.run(t, 0, "inspect", made[0]); strings.Contains(out, block) || !strings.Contains(out, ", free since ") && !strings.Contains(out, ", without an owner") {
				t.Errorf("inspect prints\n%s", out)
			}
			if out := p.run(t, 0, "lease", "list", "-o", "json"); strings.Count(out, "\n") != 2 {
				t.Errorf("leases\n%s", out)
			}

			raised := strings.Fields(strings.SplitAfter(p.run(t, 0, "lease", "raise"), "nothing before ")[1])[0]
			if until, err := time.Parse(time.RFC3339, raised); err != nil || time.Until(until) < lease.DefaultTTL {
				t.Errorf("raised to %s, %v", raised, err)
			}
			if out := p.run(t, 0, "inspect", id.String()); !strings.Contains(out, "raised, free from "+raised) {
				t.Errorf("lease after the raise:\n%s", out)
			}
			p.run(t, 2, "new")
			s := servers.OpenStore(t, store)
			if _, err := s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute}); !errors.Is(err, lease.ErrNoFreeNode) {
				t.Errorf("a raised store grants a lease: %v", err)
			}
		})
	}
}

// checkEmpty checks that a database has no tables.
func checkEmpty(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var n int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')").Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d tables, %v", n, err)
	}
}

// If the reader closes the pipe, the program ends instead of running forever.
func TestClosedPipe(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, child.Build(t, child.Traceflake), "new", "-n", "2000000000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read(make([]byte, 10))
	if err = errors.Join(err, out.Close()); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || ctx.Err() != nil {
		t.Errorf("it ended with %v, %v", err, ctx.Err())
	}
}

// psql accepts the output of `traceflake postgres`.
func TestSQLPostgres(t *testing.T) {
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed")
	}
	p := program{path: child.Build(t, child.Traceflake)}
	script := p.run(t, 0, "postgres")
	cmd := exec.Command(psql, "-v", "ON_ERROR_STOP=1", "-X", servers.PostgresForTest(t).DSN())
	cmd.Stdin = strings.NewReader(script + fmt.Sprintf("SELECT trace_id_time('%s');\n", "0eb4dcf8440000000000000000000001"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2024-01-02") {
		t.Errorf("%v\n%s", err, out)
	}
}
