package pgstore_test

import (
	"net/url"
	"testing"

	"github.com/traceflake/traceflake/lease/pgstore"
)

// The store is in the schema of the URL, or in public: the search path of a role does not matter.
func TestSchemas(t *testing.T) {
	dsn := database(t)
	admin := connect(t, dsn, nil)
	// the first one of "$user", public
	execute(t, admin, "CREATE ROLE traceflake_fleet LOGIN PASSWORD 'hunter2'")
	execute(t, admin, "CREATE SCHEMA traceflake_fleet AUTHORIZATION traceflake_fleet")
	t.Cleanup(func() {
		execute(t, admin, "DROP SCHEMA traceflake_fleet CASCADE")
		execute(t, admin, "DROP OWNED BY traceflake_fleet")
		execute(t, admin, "DROP ROLE traceflake_fleet")
	})
	const own = "&search_path=traceflake_fleet"
	for path, data := range map[string]string{"": "shared", own: "own"} {
		if _, err := pgstore.Objects(t, dsn+path).Write(t.Context(), "config", []byte(data),
			""); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_store TO traceflake_fleet")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake_fleet", "hunter2")
	for url, want := range map[string]string{
		dsn:        "shared",
		u.String(): "shared", // a role with a schema of its own
		dsn + own:  "own",
		dsn + "&search_path=%22traceflake_fleet%22": "own",
	} {
		if o, err := pgstore.Objects(t, url).Read(t.Context(), "config"); err != nil ||
			string(o.Data) != want {
			t.Errorf("%s: got %q, %v; want %q", url, o.Data, err, want)
		}
	}
}

// A copy of a database on the same server has another place.
func TestCopiedDatabase(t *testing.T) {
	dsn := database(t)
	written, err := pgstore.Objects(t, dsn).Write(t.Context(), "config", []byte("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	original, admin := u.Path[1:], connect(t, server(t), nil)
	// Connections of the store that are idle hinder the copy.
	execute(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+
		original+"'")
	execute(t, admin, "CREATE DATABASE "+original+"_copy TEMPLATE "+original)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE "+original+"_copy WITH (FORCE)") })
	u.Path += "_copy"
	copied, err := pgstore.Objects(t, u.String()).Read(t.Context(), "config")
	if err != nil || copied.Place == written.Place || copied.Place == "" {
		t.Errorf("the copy has the place %q, %v; the original %q", copied.Place, err,
			written.Place)
	}
}
