package pgstore_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

// The store is in the schema of the URL, or in public: the search path of a role does not matter.
func TestSchemas(t *testing.T) {
	dsn, admin := newDatabase(t)
	role := newRole(t, admin)
	// the first one of "$user", public
	execute(t, admin, "CREATE SCHEMA "+role+" AUTHORIZATION "+role)
	write(t, calls.Objects(t, dsn), "config", "shared", "")
	as, own := dsn+"&password=hunter2&user="+role, "&search_path="+role
	write(t, calls.Objects(t, as+own), "config", "own", "")
	execute(t, admin, "GRANT SELECT, UPDATE ON traceflake_store TO "+role+
		"; GRANT SELECT ON traceflake_place TO "+role)
	for url, want := range map[string]string{
		dsn:                                     "shared",
		as:                                      "shared", // a role with a schema of its own
		dsn + own:                               "own",
		dsn + "&search_path=%22" + role + "%22": "own",
	} {
		if o, err := calls.Objects(t, url).Read(t.Context(), "config"); err != nil ||
			string(o.Data) != want {
			t.Errorf("%s: got %q, %v; want %q", url, o.Data, err, want)
		}
	}
}

// With the rights of README.md, and not without one of them, a process begins a history after a
// crash has emptied the table of the place.
func TestRights(t *testing.T) {
	dsn, admin := newDatabase(t)
	role := newRole(t, admin)
	d, err := calls.Open(t, dsn).Create(t.Context(), lease.Description{Nodes: 8}, calls.Secret())
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := calls.Open(t, dsn+"&password=hunter2&user="+role)
	grants := regexp.MustCompile(`GRANT (.*) (ON .*) TO service;`).FindAllStringSubmatch(
		string(page), -1)
	for _, g := range grants {
		execute(t, admin, "GRANT "+g[1]+" "+g[2]+" TO "+role)
	}
	for _, g := range grants {
		for right := range strings.SplitSeq(g[1], ", ") {
			execute(t, admin, "REVOKE "+right+" "+g[2]+" FROM "+role)
			wantError(t, "without "+right+" "+g[2], s.CheckRights(t.Context()),
				lease.ErrMisconfigured, "SELECT and INSERT on traceflake_place")
			execute(t, admin, "GRANT "+right+" "+g[2]+" TO "+role)
		}
	}
	if err := s.CheckRights(t.Context()); err != nil {
		t.Error(err)
	}
	execute(t, admin, "TRUNCATE traceflake_place")
	_, err = s.Acquire(t.Context(), calls.Request(d.ID, time.Now()))
	wantError(t, "without a place", err, lease.ErrMoved)
	if d, err = s.Begin(t.Context(), calls.Begin(d, lease.Moved)); err == nil {
		_, err = s.Acquire(t.Context(), calls.Request(d.ID, time.Now()))
	}
	if err != nil {
		t.Error(err)
	}
}
