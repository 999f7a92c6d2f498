package pgstore_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// Each error says once what is wrong, and is permanent exactly if retrying cannot help.
func TestErrors(t *testing.T) {
	dsn := database(t)
	admin := connect(t, dsn, nil)
	created(t, admin)
	for _, sql := range []string{
		"CREATE ROLE traceflake_none LOGIN PASSWORD 'hunter2'",
		"CREATE ROLE traceflake_closed NOLOGIN PASSWORD 'hunter2'",
		"CREATE ROLE traceflake_full LOGIN PASSWORD 'hunter2' CONNECTION LIMIT 0",
		"CREATE SCHEMA empty", "CREATE SCHEMA customers", "CREATE SCHEMA taken",
		"CREATE TABLE customers.traceflake_store (what text)",
		"CREATE TABLE taken.traceflake_leases (what text)",
	} {
		execute(t, admin, sql)
	}
	t.Cleanup(func() {
		execute(t, admin, "DROP ROLE traceflake_none, traceflake_closed, traceflake_full")
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	const read, write = false, true
	misconfigured, dead := lease.ErrMisconfigured, closed.Addr().String()
	for _, c := range []struct {
		name                   string
		host, user, path, more string // those of the database by default
		writes                 bool
		want                   error
		text                   string
	}{
		{"unknown parameter", "", "", "", "foo=bar", read, misconfigured, "remove the parameter"},
		{"wrong parameter", "", "", "", "timezone=Mars", read, misconfigured, "invalid value"},
		{"no TLS", "", "", "", "sslmode=require", read, misconfigured, "refuses TLS"},
		{"no database", "", "", "/missing", "", read, misconfigured, "create the database"},
		{"no role", "", "traceflake_missing", "", "", read, misconfigured,
			"correct user and password"},
		// The client tries TLS first, which is not the cause.
		{"no login", "", "traceflake_closed", "", "sslmode=prefer", read, misconfigured,
			"let it log in"},
		{"no connection is left", "", "traceflake_full", "", "", read, nil, "raise its limit"},
		{"no schema", "", "", "", "search_path=missing", write, misconfigured,
			"create the schema first"},
		{"no rights", "", "traceflake_none", "", "", read, misconfigured, "SELECT and UPDATE"},
		{"no right to create", "", "traceflake_none", "", "search_path=empty", write,
			misconfigured, "CREATE on the schema"},
		{"a table in the view's place", "", "", "", "search_path=taken", write, lease.ErrExists,
			"is not a view"},
		{"another table", "", "", "", "search_path=customers", read, lease.ErrSchemaVersion,
			"column"},
		{"a standby", "", "", "", "default_transaction_read_only=on", read, nil,
			"connect to the primary"},
		{"a dead server", dead, "", "", "", read, nil, "refused"},
		{"a server without TLS, and a dead one", u.Host + "," + dead, "", "", "sslmode=require",
			read, nil, "refuses TLS"},
		{"a dead server, and one without the role", dead + "," + u.Host, "traceflake_missing", "",
			"", read, nil, "traceflake_missing"},
	} {
		to := *u
		to.Host, to.Path = cmp.Or(c.host, u.Host), cmp.Or(c.path, u.Path)
		if c.user != "" {
			to.User = url.UserPassword(c.user, "hunter2")
		}
		if more, err := url.ParseQuery(c.more); err == nil {
			query := to.Query()
			maps.Copy(query, more)
			to.RawQuery = query.Encode()
		}
		o := pgstore.Objects(t, to.String())
		_, err := o.Read(t.Context(), "page-0000")
		if c.writes {
			_, err = o.Write(t.Context(), "page-0000", []byte("1"), "")
		}
		wantError(t, c.name, err, c.want, c.text)
		if permanent := c.want != nil && !errors.Is(c.want, lease.ErrExists); lease.Permanent(
			err) != permanent {
			t.Errorf("%q is permanent: %t, want %t", err, !permanent, permanent)
		}
		text := fmt.Sprint(err)
		for _, bad := range []string{"failed to connect", "server error", "%!"} {
			if strings.Contains(text, bad) {
				t.Errorf("error %q has %q", err, bad)
			}
		}
		for _, once := range []string{"does not exist", "connection refused", "permission denied"} {
			if strings.Count(text, once) > 1 {
				t.Errorf("error %q says %q more than once", err, once)
			}
		}
	}
}

// The rights of a role are found without writing.
func TestCheckRights(t *testing.T) {
	dsn := database(t)
	admin := connect(t, dsn, nil)
	for _, sql := range []string{"CREATE ROLE traceflake_rights LOGIN PASSWORD 'hunter2'",
		"CREATE SCHEMA own AUTHORIZATION traceflake_rights"} {
		execute(t, admin, sql)
	}
	t.Cleanup(func() {
		execute(t, admin, "DROP OWNED BY traceflake_rights")
		execute(t, admin, "DROP ROLE traceflake_rights")
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("traceflake_rights", "hunter2")
	rights := func(schema string) error {
		s, err := stores.Open(u.String() + "&search_path=" + schema)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		return s.CheckRights(t.Context())
	}
	created(t, admin)
	wantError(t, "none", rights("public"), lease.ErrMisconfigured,
		"SELECT on traceflake_store", "UPDATE on traceflake_store")
	execute(t, admin,
		"GRANT SELECT, UPDATE (data) ON traceflake_store TO traceflake_rights")
	for _, schema := range []string{"public", "own"} { // in the second is no table yet
		if err := rights(schema); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	wantError(t, "no schema", rights("nowhere"), lease.ErrMisconfigured, "no schema nowhere")
}

func TestBadOptions(t *testing.T) {
	_, err := pgstore.New(nil)
	wantError(t, "no configuration", err, lease.ErrInvalidRequest, "configuration")
	for url, text := range map[string]string{
		"postgres://user:hunter2@host:port/":                  "invalid port",
		"postgres://user:%hunter2@host/db":                    "special characters of the password",
		"postgres://user:hunter2@localhost/?sslmode=perhaps":  "sslmode is invalid",
		"postgres://user:hunter2@host/db?search_path=a,b":     "search_path",
		"postgres://user:hunter2@host/db?connect_timeout=now": "connect_timeout",
	} {
		_, err := stores.Open(url)
		wantError(t, text, err, lease.ErrInvalidRequest, text)
	}
}
