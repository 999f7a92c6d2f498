//go:build unix

// Package upgrade plays docs/upgrade.md on real servers.
package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/pgstore"
)

// nextVersion builds the command of a version with another format of lease stores.
func nextVersion(t *testing.T) (path string) {
	t.Helper()
	const page = "lease/internal/engine/page.go"
	const format = "\nconst format = "
	text := child.Read(t, page)
	if strings.Count(text, format) != 1 {
		t.Fatalf("%s does not define its format as before", page)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "page.go"), filepath.Join(dir, "overlay.json")
	child.Write(t, changed, strings.Replace(text, format, format+"1 + ", 1))
	replace, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(child.Repository, page): changed}})
	if err != nil {
		t.Fatal(err)
	}
	child.Write(t, overlay, string(replace))
	path = filepath.Join(dir, "traceflake")
	child.Output(t, 0, exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o",
		path, child.Traceflake))
	return path
}

// version is a version of the command, with a store that it created.
type version struct {
	t          *testing.T
	program    string
	store      fleet.Config
	storedText string // the query of everything that is stored
}

// creates creates a store of the version in a schema.
func (v *version) creates(server *servers.PostgresServer, schema string) {
	v.t.Helper()
	u, err := url.Parse(server.DSN())
	if err != nil {
		v.t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	v.store = fleet.Config{Store: u.String(), SecretFile: filepath.Join(v.t.TempDir(), "secret")}
	v.storedText = "SELECT md5(string_agg(data, '' ORDER BY name)) FROM " + schema +
		".traceflake_store"
	execute(v.t, server.Connect(v.t), "CREATE SCHEMA "+schema)
	v.run(0, v.store, "lease create")
}

// run runs a command with a store, and expects an exit code.
func (v *version) run(code int, store fleet.Config, args string) string {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), v.program, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), "TRACEFLAKE_STORE="+store.Store,
		"TRACEFLAKE_SECRET_FILE="+store.SecretFile)
	return child.Output(v.t, code, cmd)
}

// Commands and processes of a version with another format of stores refuse a store, and write
// nothing, so the fleet goes on.
func TestAnotherFormat(t *testing.T) {
	reportstest.Collect(t)
	server := child.ForTest(t, servers.Postgres)
	conn := server.Connect(t)
	present := &version{t: t, program: child.Build(t, child.Traceflake)}
	next := &version{t: t, program: nextVersion(t)}
	present.creates(server, "present")
	next.creates(server, "next")

	opened := func(c fleet.Config) *fleet.IDs {
		t.Helper()
		ids, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
		return ids
	}
	holds, refused := opened(present.store), opened(next.store)
	for _, c := range []struct{ of, with *version }{{present, next}, {next, present}} {
		before := texts(t, conn, c.of.storedText)
		for args, code := range map[string]int{"lease list": 2, "lease create": 2, "doctor": 1} {
			if out := c.with.run(code, c.of.store, args); !strings.Contains(out,
				"this version of the library supports") ||
				!strings.Contains(out, "install that version") {
				t.Errorf("%s says\n%s", args, out)
			}
		}
		if after := texts(t, conn, c.of.storedText); !slices.Equal(after, before) {
			t.Error("the store was changed")
		}
		c.of.run(0, c.of.store, "doctor")
	}
	if err := holds.Ready(t.Context()); err != nil {
		t.Errorf("a process of the store's version: %v", err)
	}
	if err := refused.Ready(t.Context()); !errors.Is(err, lease.ErrSchemaVersion) {
		t.Errorf("a process of another version: %v, want %v", err, lease.ErrSchemaVersion)
	}
	if refused.NewIDs(t.Context()); refused.Fallbacks() != 1 {
		t.Errorf("%d random IDs, want 1", refused.Fallbacks())
	}
}
