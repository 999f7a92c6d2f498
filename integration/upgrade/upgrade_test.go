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
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// buildChanged builds the command of another version, whose source differs in one line of a file.
func buildChanged(t *testing.T, file, line, other string) (path string) {
	t.Helper()
	text := child.Read(t, file)
	if strings.Count(text, line) != 1 {
		t.Fatalf("%s does not have the line %q, which the test changes", file, line)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	child.Write(t, changed, strings.Replace(text, line, other, 1))
	replace, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(child.Repository, file): changed}})
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

// open opens the store of the version in this process, of the present version.
func (v *version) open() *fleet.IDs {
	v.t.Helper()
	ids, err := v.store.Open(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
	return ids
}

// A command and a process of which one is older share a store, although the older one lacks a field
// of a block.
func TestOneFormat(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	present := &version{t: t, program: child.Build(t, child.Traceflake)}
	earlier := &version{t: t, program: buildChanged(t, "lease/store.go",
		"Behind time.Duration `json:\",omitempty\"`", "Behind time.Duration `json:\"-\"`")}
	earlier.creates(server, "earlier")
	if err := earlier.open().Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := stores.Open(earlier.store.Store)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := calls.Request(time.Now().Add(-2 * time.Hour)) // the field is stored
	r.Store, r.Owner = d.ID, "behind"
	if _, err := s.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for v, held := range map[*version]string{present: "2 of", earlier: "1 of"} {
		for _, args := range []string{"lease list", "lease create", "doctor"} {
			out := v.run(0, earlier.store, args)
			if args == "lease list" && !strings.Contains(out, held) {
				t.Errorf("want %s 16384 blocks taken:\n%s", held, out)
			}
		}
	}
}

// Commands and processes of a version with another format of stores refuse a store, and write
// nothing, so the fleet goes on.
func TestAnotherFormat(t *testing.T) {
	reportstest.Collect(t)
	server := child.ForTest(t, servers.Postgres)
	conn := server.Connect(t)
	present := &version{t: t, program: child.Build(t, child.Traceflake)}
	const format = "\nconst format = "
	next := &version{t: t,
		program: buildChanged(t, "lease/internal/engine/page.go", format, format+"1 + ")}
	present.creates(server, "present")
	next.creates(server, "next")

	holds, refused := present.open(), next.open()
	ready := func() {
		t.Helper()
		if err := holds.Ready(t.Context()); err != nil {
			t.Errorf("a process of the store's version: %v", err)
		}
	}
	ready()
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
	ready()
	if err := refused.Ready(t.Context()); !errors.Is(err, lease.ErrSchemaVersion) {
		t.Errorf("a process of another version: %v, want %v", err, lease.ErrSchemaVersion)
	}
	if refused.NewIDs(t.Context()); refused.Fallbacks() != 1 {
		t.Errorf("%d random IDs, want 1", refused.Fallbacks())
	}
}
