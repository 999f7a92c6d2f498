//go:build unix

package pgstore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

var wantError = calls.WantError("", "postgres:")

// Each copy of a store, and the store itself once its server may have forgotten something, has
// another place than before: nobody writes there who read the store earlier. README.md has the
// list.
func TestCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	server := child.ForTest(t, servers.StartPostgres)
	copied := func() *servers.PostgresInstance { return child.ForTest(t, server.Copy) }
	objects := func(dsn string) driver.Objects { return calls.Objects(t, dsn) }
	in := func(database string) string {
		return strings.Replace(server.DSN(), "/postgres?", "/"+database+"?", 1)
	}

	must(server.Stop())
	sibling := copied()
	must(server.Run(), server.Wait(ctx), sibling.Start(ctx))
	original := calls.NewPlace(t, objects(server.DSN()))
	other := calls.NewPlace(t, objects(sibling.DSN()))

	t.Run("the server of one image", func(t *testing.T) {
		original.Refuses(t, objects(sibling.DSN()))
	})
	t.Run("a disk in use", func(t *testing.T) {
		running := copied()
		must(running.Start(ctx))
		original.Refuses(t, objects(running.DSN()))
	})
	t.Run("a template", func(t *testing.T) {
		must(server.Exec(ctx, "CREATE DATABASE one"))
		store := calls.NewPlace(t, objects(in("one")))
		must(server.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
			"WHERE datname = 'one'"), server.Exec(ctx, "CREATE DATABASE two TEMPLATE one"))
		store.Refuses(t, objects(in("two")))
	})
	t.Run("a promoted standby", func(t *testing.T) {
		standby := child.ForTest(t, func(ctx context.Context) (*servers.PostgresInstance, error) {
			return server.Standby(ctx, server.Address)
		})
		// The session that pgbouncer opens now is the one that survives the promotion.
		pooled := objects(pgbouncer(t, standby.DSN()))
		_, err := pooled.Read(ctx, "config")
		wantError(t, "a standby", err, nil, "connect to the primary")
		must(standby.Promote(ctx))
		original.Refuses(t, pooled)
	})
	t.Run("a dump", func(t *testing.T) {
		server := child.ForTest(t, servers.StartInstalledPostgres)
		store := calls.NewPlace(t, objects(server.DSN()))
		file := filepath.Join(t.TempDir(), "dump")
		child.Output(t, 0, server.Program("pg_dump", "-Fc", "-f", file, server.DSN()))
		must(server.Exec(ctx, "CREATE DATABASE restored"))
		elsewhere := strings.Replace(server.DSN(), "/postgres?", "/restored?", 1)
		child.Output(t, 0, server.Program("pg_restore", "-d", elsewhere, file))
		store.Refuses(t, objects(elsewhere))
		child.Output(t, 0, server.Program("pg_restore", "--clean", "-d", server.DSN(), file))
		store.Refuses(t, objects(server.DSN())) // in place
	})
	t.Run("a table that was not restored", func(t *testing.T) {
		must(sibling.Exec(ctx, "DROP TABLE traceflake_place"))
		other.Refuses(t, objects(sibling.DSN()))
	})
	t.Run("a killed session", func(t *testing.T) {
		must(crash(server.DSN()), server.Wait(ctx))
		original.Refuses(t, objects(server.DSN()))
	})
	t.Run("a logged table", func(t *testing.T) {
		o := objects(server.DSN())
		store := calls.NewPlace(t, o)
		must(server.Exec(ctx, "ALTER TABLE traceflake_place SET LOGGED"))
		found, err := o.Read(ctx, "config")
		if err != nil || found.Place != "" {
			t.Errorf("the place is %q, %v; want an unknown one", found.Place, err)
		}
		_, err = o.Write(ctx, "config", []byte("x"), found.Version, store.Place)
		wantError(t, "a write", err, lease.ErrMoved)
		_, err = calls.Prepared(ctx, o)
		wantError(t, "drawing a place", err, lease.ErrMisconfigured, "SET UNLOGGED")
		must(server.Exec(ctx, "ALTER TABLE traceflake_place SET UNLOGGED"))
	})
	t.Run("a restart, and an image that was put back", func(t *testing.T) {
		store := calls.NewPlace(t, objects(server.DSN()))
		must(server.Stop())
		image := copied()
		must(server.Run(), server.Wait(ctx))
		store.Refuses(t, objects(server.DSN()))
		must(server.Stop(), server.Swap(image), server.Run(), server.Wait(ctx))
		store.Refuses(t, objects(server.DSN()))
	})
}
