package pgstore_test

import (
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
)

// The store is in the schema of the URL, or in public: the search path of a role does not matter.
// A role needs the rights that README.md lists.
func TestSchemas(t *testing.T) {
	dsn, admin := newDatabase(t)
	role := newRole(t, admin)
	// the first one of "$user", public
	execute(t, admin, "CREATE SCHEMA "+role+" AUTHORIZATION "+role)
	own := "&search_path=" + role
	for path, data := range map[string]string{"": "shared", own: "own"} {
		write(t, calls.Objects(t, dsn+path), "config", data, "")
	}
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_store TO "+role)
	as := dsn + "&password=hunter2&user=" + role
	if err := calls.Open(t, as).CheckRights(t.Context()); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{
		dsn:                                     "shared",
		dsn + "&password=hunter2&user=" + role:  "shared", // a role with a schema of its own
		dsn + own:                               "own",
		dsn + "&search_path=%22" + role + "%22": "own",
	} {
		if o, err := calls.Objects(t, url).Read(t.Context(), "config"); err != nil ||
			string(o.Data) != want {
			t.Errorf("%s: got %q, %v; want %q", url, o.Data, err, want)
		}
	}
}

// A copy of a database on the same server has another place.
func TestCopiedDatabase(t *testing.T) {
	dsn, admin := newDatabase(t)
	written := write(t, calls.Objects(t, dsn), "config", "1", "")
	original, other := admin.Config().ConnConfig.Database, connect(t, server(t))
	// Connections that are idle hinder the copy.
	execute(t, other, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+
		original+"'")
	execute(t, other, "CREATE DATABASE "+original+"_copy TEMPLATE "+original)
	t.Cleanup(func() { execute(t, other, "DROP DATABASE "+original+"_copy WITH (FORCE)") })
	copied, err := calls.Objects(t, dsn+"&dbname="+original+"_copy").Read(t.Context(), "config")
	if err != nil || copied.Place == written.Place || copied.Place == "" {
		t.Errorf("the copy has the place %q, %v; the original %q", copied.Place, err,
			written.Place)
	}
}
