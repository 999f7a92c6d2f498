// Package cmd runs the command line against real stores.
package cmd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/traceid"
)

// An operator's work with a store: while a service holds a lease, the operator generates IDs, looks
// up who generated an ID, and raises the store.
func operate(t *testing.T, store string) {
	path, secretFile := child.Build(t, child.Traceflake), filepath.Join(t.TempDir(), "secret")
	run := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), settings.Store+"="+store, settings.SecretFile+"="+secretFile)
		return child.Output(t, code, cmd)
	}
	run(2, "lease", "list")
	run(2, "lease", "raise", "--yes")
	run(0, "lease", "create")
	run(0, "lease", "create")
	if out := run(0, "lease", "list"); !strings.Contains(out, " 0 of 16384 blocks are taken; 0 ") ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("a new store has leases:\n%s", out)
	}
	ids, err := fleet.Config{Store: store, SecretFile: secretFile,
		TTL: time.Minute}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ids.Shutdown(context.Background()) }() // fails after the raise
	id, span := ids.NewIDs(t.Context())
	if ids.Fallbacks() > 0 {
		t.Fatal("the service has no lease")
	}

	keyring, err := fleet.LoadKeyring(secretFile)
	if err != nil {
		t.Fatal(err)
	}
	block := fmt.Sprintf("lease now block %d+8, held by ",
		traceid.Inspect(keyring, id).Parts.Node&^7)
	for _, text := range []string{id.String(), span.String()} {
		if out := run(0, "inspect", text); !strings.Contains(out, block) {
			t.Errorf("inspect prints\n%s", out)
		}
	}
	made := strings.Fields(run(0, "new", "-n", "3"))
	run(0, append([]string{"verify", id.String()}, made...)...)
	run(1, "verify", strings.Repeat("1", 32))
	if out := run(0, "inspect", made[0]); strings.Contains(out, block) ||
		!strings.Contains(out, ", free since ") && !strings.Contains(out, ", without an owner") {
		t.Errorf("inspect prints\n%s", out)
	}
	if out := run(0, "lease", "list", "-o", "json"); strings.Count(out, `{"node":`) != 2 {
		t.Errorf("leases\n%s", out)
	}

	raised := strings.Fields(
		strings.SplitAfter(run(0, "lease", "raise", "--yes"), "nothing before ")[1])[0]
	if until, err := time.Parse(time.RFC3339, raised); err != nil ||
		time.Until(until) < lease.DefaultTTL {
		t.Errorf("raised to %s, %v", raised, err)
	}
	if out := run(0, "inspect", id.String()); !strings.Contains(out, "raised, free from "+raised) {
		t.Errorf("lease after the raise:\n%s", out)
	}
	run(2, "new")
	_, err = processes.Store(store).Client(t).Acquire(t.Context(),
		lease.Request{Nonce: protocol.NewNonce(), Now: time.Now(), TTL: time.Minute})
	if !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("a raised store grants a lease: %v", err)
	}
}

func TestEtcd(t *testing.T) {
	operate(t, "etcd://"+strings.TrimPrefix(etcd.ForTest(t, 1).Endpoints()[0], "http://"))
}

// Only create creates tables. PostgreSQL accepts the output of `traceflake postgres`.
func TestPostgres(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	dsn, path := server.DSN(), child.Build(t, child.Traceflake)
	conn := server.Connect(t)
	for _, command := range []string{"list", "raise"} {
		_ = exec.CommandContext(t.Context(), path, "lease", command, "--store", dsn).Run()
	}
	var tables int
	err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN "+
		"('pg_catalog', 'information_schema')").Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("%d tables, %v", tables, err)
	}
	operate(t, dsn)

	script, err := exec.CommandContext(t.Context(), path, "postgres").Output()
	if err == nil {
		_, err = conn.PgConn().Exec(t.Context(), string(script)).ReadAll()
	}
	if err != nil {
		t.Fatal(err)
	}
	var at time.Time
	err = conn.QueryRow(t.Context(),
		"SELECT trace_id_time('0eb4dcf8440000000000000000000001')").Scan(&at)
	if err != nil || at.Year() != 2024 {
		t.Errorf("%s, %v", at, err)
	}
}

// If the reader closes the pipe, the program ends instead of running forever.
func TestClosedPipe(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "new", "-n", "2000000000")
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
