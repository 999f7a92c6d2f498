package pgstore_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// The store is in the schema of the URL, or in public: the search path of a role does not matter.
func TestSchemas(t *testing.T) {
	dsn := database(t)
	admin, ctx := connect(t, dsn, nil), context.Background()
	execute(t, admin, "CREATE ROLE traceflake_fleet LOGIN PASSWORD 'hunter2'")
	t.Cleanup(func() {
		execute(t, admin, "DROP SCHEMA traceflake_fleet CASCADE")
		execute(t, admin, "DROP OWNED BY traceflake_fleet")
		execute(t, admin, "DROP ROLE traceflake_fleet")
	})
	// the first one of "$user", public
	execute(t, admin, "CREATE SCHEMA traceflake_fleet AUTHORIZATION traceflake_fleet")
	path := func(schema string) stores.Store {
		return open(t, connect(t, dsn, map[string]string{"search_path": schema}))
	}
	shared := create(t, path(""), description(t))
	own := create(t, path("traceflake_fleet"), description(t))
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_store TO traceflake_fleet")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake_fleet", "hunter2")
	for what, c := range map[string]struct {
		store stores.Store
		want  string
	}{
		"no search_path":             {path(""), shared.ID},
		"a role with its own schema": {open(t, connect(t, u.String(), nil)), shared.ID},
		"a search_path":              {path("traceflake_fleet"), own.ID},
		"a search_path in quotes":    {path(`"traceflake_fleet"`), own.ID},
	} {
		if d, err := c.store.Describe(ctx); err != nil || d.ID != c.want {
			t.Errorf("%s: the store %q, %v; want %s", what, d.ID, err, c.want)
		}
	}
	second := description(t)
	second.ID = lease.NewNonce()
	wantError(t, "create a second store", path("").Create(ctx, second), lease.ErrExists,
		shared.ID)
	if err := path("").Create(ctx, shared); err != nil {
		t.Errorf("create the same store again: %v", err)
	}
}

// A copy of a database on the same server is refused, also for a role with the rights of a process.
func TestCopiedDatabase(t *testing.T) {
	dsn := database(t)
	admin := connect(t, dsn, nil)
	d := create(t, open(t, admin), description(t))
	admin.Close()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	original := strings.TrimPrefix(u.Path, "/")
	server := connect(t, server(t), nil)
	// Connections of the store that are idle hinder the copy.
	execute(t, server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+
		original+"'")
	execute(t, server, "CREATE DATABASE "+original+"_copy TEMPLATE "+original)
	t.Cleanup(func() { execute(t, server, "DROP DATABASE "+original+"_copy WITH (FORCE)") })
	u.Path += "_copy"
	s := open(t, connect(t, u.String(), nil))
	_, err = s.Describe(t.Context())
	wantError(t, "a copy", err, lease.ErrMoved)
	next := lease.NewNonce()
	if err := s.Replace(t.Context(), d.ID, next, "0123456789abcdef"); err != nil {
		t.Error(err)
	}
	if got, err := s.Describe(t.Context()); err != nil || got.ID != next {
		t.Errorf("with a new secret: %v, %v", got, err)
	}
}

// An operator drops or renames the table, or creates another store in its place. A client of the
// store before uses nothing else, and creates nothing. When the store is back, the client
// continues.
func TestReplacedWhileInUse(t *testing.T) {
	ctx, admin := t.Context(), connect(t, database(t), nil)
	s := created(t, admin)
	g, err := s.Acquire(ctx, calls.Request(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, want ...error) {
		t.Helper()
		for _, call := range calls.OnBlocks(ctx, s, g, time.Now()) {
			if call.Name != "list" && !slices.ContainsFunc(want,
				func(w error) bool { return errors.Is(call.Err, w) }) {
				t.Errorf("%s: %s: %v, want %v", what, call.Name, call.Err, want)
			}
		}
	}
	execute(t, admin, "ALTER TABLE traceflake_store RENAME TO away")
	refused("renamed", lease.ErrNoStore, driver.ErrEdited)
	execute(t, admin, "ALTER TABLE away RENAME TO traceflake_store")
	if g, err = s.Renew(ctx, g, calls.Renewal(g)); err != nil {
		t.Fatalf("renew when the store is back: %v", err)
	}
	execute(t, admin, "DROP TABLE traceflake_store CASCADE")
	refused("dropped", lease.ErrNoStore, driver.ErrEdited)
	other := description(t)
	other.ID = lease.NewNonce()
	create(t, open(t, admin), other)
	refused("dropped, recreated", lease.ErrReplaced)
	if n := value[int](t, admin, "SELECT count(*) FROM traceflake_leases"); n > 0 {
		t.Errorf("%d blocks of another store were written", n)
	}
}
