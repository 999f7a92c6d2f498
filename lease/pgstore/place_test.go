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
	as := dsn + "&password=hunter2&user=" + role
	for _, grant := range []string{"SELECT, UPDATE ON traceflake_store",
		"SELECT ON traceflake_place", "INSERT ON traceflake_place", "INSERT ON traceflake_store"} {
		wantError(t, "before "+grant, calls.Open(t, as).CheckRights(t.Context()),
			lease.ErrMisconfigured, "SELECT and INSERT on traceflake_place")
		execute(t, admin, "GRANT "+grant+" TO "+role)
	}
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

// With the rights of README.md a process begins a history after a crash has emptied the table of
// the place.
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
	for _, grant := range regexp.MustCompile(`GRANT .* TO service;`).FindAllString(string(page),
		-1) {
		execute(t, admin, strings.Replace(grant, "service", role, 1))
	}
	s := calls.Open(t, dsn+"&password=hunter2&user="+role)
	if _, err := s.Acquire(t.Context(), calls.Request(d.ID, time.Now())); err != nil {
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
