package pgstore_test

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Roles with a search path of their own use one store, until there is one in a second schema: then
// those that may read both name theirs.
func TestSchemas(t *testing.T) {
	dsn := database(t)
	admin, ctx := connect(t, dsn, nil), context.Background()
	path := func(schema string) driver.Store {
		return open(t, connect(t, dsn, map[string]string{"search_path": schema}))
	}
	as := func(role string) driver.Store {
		t.Helper()
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, "hunter2")
		return open(t, connect(t, u.String(), nil))
	}
	for _, role := range []string{"fleet_a", "fleet_b"} {
		execute(t, admin, "CREATE ROLE "+role+" LOGIN PASSWORD 'hunter2'")
		execute(t, admin, "CREATE SCHEMA "+role+" AUTHORIZATION "+role) // the first one of "$user", public
	}
	t.Cleanup(func() {
		execute(t, admin, "DROP SCHEMA fleet_a CASCADE")
		execute(t, admin, "DROP OWNED BY fleet_a, fleet_b")
		execute(t, admin, "DROP ROLE fleet_a, fleet_b")
	})
	shared := create(t, path(""), description(t))
	execute(t, admin, "GRANT SELECT ON traceflake_leases, traceflake_leases_store TO fleet_a, fleet_b")
	for _, role := range []string{"fleet_a", "fleet_b"} {
		if d, err := as(role).Describe(ctx); err != nil || d.ID != shared.ID {
			t.Errorf("%s: the store %q, %v; want %s", role, d.ID, err, shared.ID)
		}
	}
	used := path("")
	if err := use(used); err != nil {
		t.Fatal(err)
	}
	d := description(t)
	wantError(t, "create a second store", path("").Create(ctx, d), lease.ErrExists, "schema public")
	own := create(t, path("fleet_a"), d)
	for _, s := range []driver.Store{path("fleet_a"), path(`"fleet_a"`)} {
		if d, err := s.Describe(ctx); err != nil || d.ID != own.ID {
			t.Errorf("in the schema fleet_a: the store %q, %v; want %s", d.ID, err, own.ID)
		}
	}
	wantError(t, "two stores", use(path("")), lease.ErrMisconfigured, "fleet_a, public", "?search_path=")
	if d, err := as("fleet_b").Describe(ctx); err != nil || d.ID != shared.ID {
		t.Errorf("a role that may read one store only: %q, %v; want %s", d.ID, err, shared.ID)
	}
	if err := use(used); err != nil {
		t.Errorf("a client that found its store before there were two: %v", err)
	}
}

// While processes generate IDs, an operator drops the tables, moves them away, or puts others in
// their place. The processes use their leases to the ends, report what happened, and create and use
// nothing else: no two IDs are the same. When the store is back, they go on.
func TestReplacedWhileInUse(t *testing.T) {
	for name, c := range map[string]struct {
		replace, restore []string
		another          bool   // store is created in between
		written          string // counts the blocks that were written although they belong to no store or to another one
	}{
		"dropped": {replace: []string{"DROP TABLE traceflake_leases, traceflake_leases_store"}},
		"dropped, recreate": {replace: []string{"DROP TABLE traceflake_leases, traceflake_leases_store"}, another: true,
			written: "SELECT count(*) FROM traceflake_leases WHERE version > 0"},
		"renamed": {
			replace: []string{"ALTER TABLE traceflake_leases RENAME TO away"},
			restore: []string{"ALTER TABLE away RENAME TO traceflake_leases"},
		},
		"moved, recreated": {
			replace: []string{"CREATE SCHEMA away", "ALTER TABLE traceflake_leases SET SCHEMA away", "ALTER TABLE traceflake_leases_store SET SCHEMA away"},
			another: true,
			written: "SELECT count(*) FROM traceflake_leases WHERE version > 0",
			restore: []string{"DROP TABLE traceflake_leases, traceflake_leases_store", "ALTER TABLE away.traceflake_leases SET SCHEMA public",
				"ALTER TABLE away.traceflake_leases_store SET SCHEMA public"},
		},
		"only the blocks, copied": {
			replace: []string{"ALTER TABLE traceflake_leases RENAME TO away", "CREATE TABLE traceflake_leases (LIKE away INCLUDING ALL)",
				"INSERT INTO traceflake_leases SELECT node, repeat('0', 32), granted_from, granted_until, nonce, owner, version FROM away"},
			written: "SELECT count(*) FROM traceflake_leases AS a JOIN away AS b USING (node) WHERE a.version <> b.version",
			restore: []string{"DROP TABLE traceflake_leases", "ALTER TABLE away RENAME TO traceflake_leases"},
		},
		"emptied": {replace: []string{"TRUNCATE traceflake_leases"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			admin := connect(t, dsn, nil)
			f := newFleet(t, admin)
			f.generate(2 * time.Second)
			for _, sql := range c.replace {
				execute(t, admin, sql)
			}
			if c.another {
				created(t, connect(t, dsn, map[string]string{"search_path": "public"}))
			}
			f.generate(5 * time.Second) // longer than a lease
			for i, k := range f.keepers {
				if !f.replaced[i].Load() {
					t.Errorf("process %d did not report %v", i, lease.ErrReplaced)
				}
				if n, _, err := k.Fill(make([]randflake.ID, 1)); n > 0 || err == nil {
					t.Errorf("process %d still has a lease", i)
				}
			}
			if c.written != "" {
				if n := value[int](t, admin, c.written); n > 0 {
					t.Errorf("%d blocks of another store were written", n)
				}
			}
			if len(c.restore) > 0 {
				for _, sql := range c.restore {
					execute(t, admin, sql)
				}
				before := f.generated()
				for deadline := time.Now().Add(30 * time.Second); f.generated() == before; {
					if time.Now().After(deadline) {
						t.Fatal("no process goes on when the store is back")
					}
					f.generate(200 * time.Millisecond)
				}
			}
			t.Logf("%d IDs", f.generated())
		})
	}
}

// fleet is processes, in one, that generate IDs under one secret.
type fleet struct {
	t        *testing.T
	keepers  []*lease.Keeper
	replaced []*atomic.Bool // whether the keeper reported that its store was
	ids      map[randflake.ID]bool
}

func newFleet(t *testing.T, pool *pgxpool.Pool) *fleet {
	t.Helper()
	codec, err := randflake.NewCodec([]byte("one fleet's code"))
	if err != nil {
		t.Fatal(err)
	}
	d := description(t)
	d.Secrets = []string{lease.Fingerprint(codec, d.ID)}
	create(t, open(t, pool), d)
	f := &fleet{t: t, ids: map[randflake.ID]bool{}}
	for range few.Blocks() - 1 {
		replaced := new(atomic.Bool)
		k, err := lease.Start(t.Context(), open(t, pool), codec, lease.WithTTL(2*time.Second), lease.WithErrorHandler(func(err error) {
			if errors.Is(err, lease.ErrReplaced) {
				replaced.Store(true)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		f.keepers, f.replaced = append(f.keepers, k), append(f.replaced, replaced)
		t.Cleanup(func() { _ = k.Close(context.Background()) })
	}
	return f
}

func (f *fleet) generated() int { return len(f.ids) }

// generate has every process generate IDs for a while, some in each millisecond.
func (f *fleet) generate(d time.Duration) {
	f.t.Helper()
	ids := make([]randflake.ID, 4)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, k := range f.keepers {
			n, _, _ := k.Fill(ids)
			for _, id := range ids[:n] {
				if f.ids[id] {
					f.t.Fatalf("ID %d was generated twice", id)
				}
				f.ids[id] = true
			}
		}
	}
}
