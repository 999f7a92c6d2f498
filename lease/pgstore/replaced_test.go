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
	execute(t, admin, "CREATE SCHEMA traceflake_fleet AUTHORIZATION traceflake_fleet") // the first one of "$user", public
	path := func(schema string) driver.Store {
		return open(t, connect(t, dsn, map[string]string{"search_path": schema}))
	}
	shared := create(t, path(""), description(t))
	own := create(t, path("traceflake_fleet"), description(t))
	execute(t, admin, "GRANT SELECT ON traceflake_leases, traceflake_leases_store TO traceflake_fleet")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake_fleet", "hunter2")
	for what, c := range map[string]struct {
		store driver.Store
		want  string
	}{
		"no search_path":              {path(""), shared.ID},
		"a role with its own schema":  {open(t, connect(t, u.String(), nil)), shared.ID},
		"a search_path":               {path("traceflake_fleet"), own.ID},
		"a search_path in quotes":     {path(`"traceflake_fleet"`), own.ID},
		"a search_path, said in full": {path("public"), shared.ID},
	} {
		if d, err := c.store.Describe(ctx); err != nil || d.ID != c.want {
			t.Errorf("%s: the store %q, %v; want %s", what, d.ID, err, c.want)
		}
	}
	wantError(t, "create a second store", path("").Create(ctx, description(t)), lease.ErrExists, "schema public", shared.ID)
	if err := path("").Create(ctx, shared); err != nil {
		t.Errorf("create the same store again: %v", err)
	}
}

// While processes generate IDs, an operator drops the tables, moves them away, or puts others in
// their place. The processes use their leases to the ends, report what happened, and create and use
// nothing else: no two IDs are the same. When the store is back, they go on.
func TestReplacedWhileInUse(t *testing.T) {
	cases := []struct {
		name             string
		replace, restore []string
		another          bool   // store is created in between
		written          string // counts the blocks that were written although they belong to another store
	}{
		{
			name: "dropped, recreated", another: true,
			replace: []string{"DROP TABLE traceflake_leases, traceflake_leases_store"},
			written: "SELECT count(*) FROM traceflake_leases WHERE version > 0",
		}, {
			name:    "renamed",
			replace: []string{"ALTER TABLE traceflake_leases RENAME TO away"},
			restore: []string{"ALTER TABLE away RENAME TO traceflake_leases"},
		}, {
			name: "moved, recreated", another: true,
			replace: []string{"CREATE SCHEMA away", "ALTER TABLE traceflake_leases SET SCHEMA away", "ALTER TABLE traceflake_leases_store SET SCHEMA away"},
			written: "SELECT count(*) FROM traceflake_leases WHERE version > 0",
			restore: []string{"DROP TABLE traceflake_leases, traceflake_leases_store", "ALTER TABLE away.traceflake_leases SET SCHEMA public",
				"ALTER TABLE away.traceflake_leases_store SET SCHEMA public"},
		}, {
			name: "only the blocks, copied",
			replace: []string{"ALTER TABLE traceflake_leases RENAME TO away", "CREATE TABLE traceflake_leases (LIKE away INCLUDING ALL)",
				"INSERT INTO traceflake_leases SELECT node, repeat('0', 32), granted_from, granted_until, nonce, owner, version FROM away"},
			written: "SELECT count(*) FROM traceflake_leases AS a JOIN away AS b USING (node) WHERE a.version <> b.version",
			restore: []string{"DROP TABLE traceflake_leases", "ALTER TABLE away RENAME TO traceflake_leases"},
		}, {
			name: "emptied", replace: []string{"TRUNCATE traceflake_leases"},
		},
	}
	fleets := make([]*fleet, len(cases))
	for i := range cases {
		fleets[i] = newFleet(t, connect(t, database(t), nil))
	}
	// generate has every process generate IDs, some in each millisecond, for a second, and until each
	// fleet is done.
	generate := func(what string, done func(i int, f *fleet) bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(time.Millisecond) {
			left := ""
			for i, f := range fleets {
				f.generate()
				if done != nil && !done(i, f) {
					left += cases[i].name + "; "
				}
			}
			if took := time.Since(began); left != "" && took > 30*time.Second {
				t.Fatalf("%s: not after %s: %s", what, took, left)
			} else if left == "" && took > time.Second {
				return
			}
		}
	}
	generate("", nil)
	for i, c := range cases {
		for _, sql := range c.replace {
			execute(t, fleets[i].admin, sql)
		}
		if c.another {
			created(t, fleets[i].admin)
		}
	}
	generate("each process reports that the store is replaced, and has no lease", func(_ int, f *fleet) bool { return f.replaced() })
	before := make([]int, len(fleets))
	for i, c := range cases {
		if c.written != "" {
			if n := value[int](t, fleets[i].admin, c.written); n > 0 {
				t.Errorf("%s: %d blocks of another store were written", c.name, n)
			}
		}
		for _, sql := range c.restore {
			execute(t, fleets[i].admin, sql)
		}
		before[i] = len(fleets[i].ids)
	}
	generate("a process goes on when the store is back", func(i int, f *fleet) bool { return cases[i].restore == nil || len(f.ids) > before[i] })
}

// fleet is processes, in one, that generate IDs under one secret.
type fleet struct {
	t       *testing.T
	admin   *pgxpool.Pool
	keepers []*lease.Keeper
	reports []*atomic.Bool // whether the keeper reported that its store was replaced
	empty   []bool         // whether it has no lease
	ids     map[randflake.ID]bool
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
	f := &fleet{t: t, admin: pool, empty: make([]bool, few.Blocks()-1), ids: map[randflake.ID]bool{}}
	for range f.empty {
		replaced := new(atomic.Bool)
		k, err := lease.Start(t.Context(), open(t, pool), codec, lease.WithTTL(2*time.Second), lease.WithErrorHandler(func(err error) {
			if errors.Is(err, lease.ErrReplaced) {
				replaced.Store(true)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		f.keepers, f.reports = append(f.keepers, k), append(f.reports, replaced)
		t.Cleanup(func() { _ = k.Close(context.Background()) })
	}
	return f
}

// replaced reports whether each process reported that, and has no lease.
func (f *fleet) replaced() bool {
	all := true
	for i := range f.keepers {
		all = all && f.reports[i].Load() && f.empty[i]
	}
	return all
}

// generate has every process generate some IDs.
func (f *fleet) generate() {
	f.t.Helper()
	ids := make([]randflake.ID, 4)
	for i, k := range f.keepers {
		n, _, err := k.Fill(ids)
		f.empty[i] = n == 0 && err != nil
		for _, id := range ids[:n] {
			if f.ids[id] {
				f.t.Fatalf("ID %d was generated twice", id)
			}
			f.ids[id] = true
		}
	}
}
