package pgstore_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
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
		"CREATE ROLE traceflake_reader LOGIN PASSWORD 'hunter2'",
		"CREATE ROLE traceflake_user LOGIN PASSWORD 'hunter2'",
		"CREATE ROLE traceflake_none LOGIN PASSWORD 'hunter2'",
		"GRANT SELECT ON traceflake_store TO traceflake_reader",
		"GRANT SELECT, UPDATE ON traceflake_store TO traceflake_user",
		"CREATE SCHEMA empty", "CREATE SCHEMA newer", "CREATE SCHEMA customers",
		"CREATE SCHEMA taken",
		"CREATE TABLE newer.traceflake_store AS SELECT * FROM traceflake_store",
		`UPDATE newer.traceflake_store SET data = convert_to(
			replace(convert_from(data, 'UTF8'), '"Format":3', '"Format":9'), 'UTF8')`,
		"CREATE TABLE customers.traceflake_store (what text)",
		"CREATE TABLE taken.traceflake_leases (what text)",
	} {
		execute(t, admin, sql)
	}
	t.Cleanup(func() {
		execute(t, admin, "DROP OWNED BY traceflake_none, traceflake_reader, traceflake_user")
		execute(t, admin, "DROP ROLE traceflake_none, traceflake_reader, traceflake_user")
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	acquire := func(ctx context.Context, s stores.Store) error {
		_, err := s.Acquire(ctx, calls.Request(time.Now()))
		return err
	}
	create := func(ctx context.Context, s stores.Store) error {
		d := few
		d.ID = lease.NewNonce()
		return s.Create(ctx, d)
	}
	role := func(name, password string) func(*url.URL) {
		return func(u *url.URL) { u.User = url.UserPassword(name, password) }
	}
	with := func(parameter, v string) func(*url.URL) {
		return func(u *url.URL) {
			q := u.Query()
			q.Set(parameter, v)
			u.RawQuery = q.Encode()
		}
	}
	host := func(address string) func(*url.URL) { return func(u *url.URL) { u.Host = address } }
	for _, c := range []struct {
		name      string
		change    func(*url.URL)
		call      func(context.Context, stores.Store) error
		want      error
		permanent bool
		text      string
	}{
		{"unknown parameter", with("foo", "bar"), acquire, lease.ErrMisconfigured, true,
			`unrecognized configuration parameter "foo"`},
		{"wrong parameter", with("timezone", "Mars"), acquire, lease.ErrMisconfigured, true,
			"TimeZone"},
		{"no TLS", with("sslmode", "require"), acquire, lease.ErrMisconfigured, true,
			"refuses TLS"},
		{"no database", func(u *url.URL) { u.Path = "/missing" }, acquire, lease.ErrMisconfigured,
			true, `database "missing" does not exist`},
		{"no role", role("traceflake_missing", "hunter2"), acquire, lease.ErrMisconfigured, true,
			"traceflake_missing"},
		{"wrong password", role("traceflake_user", "wrong hunter2"), acquire,
			lease.ErrMisconfigured, true, "password"},
		{"no store", with("search_path", "empty"), acquire, lease.ErrNoStore, true,
			"no lease store"},
		{"no schema to create in", with("search_path", "missing"), create, lease.ErrMisconfigured,
			true, "create the schema first"},
		{"no right to create",
			func(u *url.URL) {
				with("search_path", "empty")(u)
				role("traceflake_user", "hunter2")(u)
			}, create,
			lease.ErrMisconfigured, true, "CREATE"},
		{"no right to read", role("traceflake_none", "hunter2"), acquire, lease.ErrMisconfigured,
			true, "SELECT"},
		{"no right to write", role("traceflake_reader", "hunter2"), acquire, lease.ErrMisconfigured,
			true, "UPDATE"},
		{"rights of a process", role("traceflake_user", "hunter2"), acquire, nil, false, ""},
		{"another store", nil, create, lease.ErrExists, false, "created at"},
		{"a table in the view's place", with("search_path", "taken"), create, lease.ErrExists,
			false, "is not a view"},
		{"a newer store", with("search_path", "newer"), acquire, lease.ErrSchemaVersion, true,
			"format 9"},
		{"another kind of table", with("search_path", "customers"), acquire, lease.ErrSchemaVersion,
			true, "column"},
		{"a standby", with("default_transaction_read_only", "on"), acquire, nil, false,
			"connect to the primary"},
		{"a dead server",
			func(u *url.URL) { with("sslmode", "prefer")(u); u.Host = closed.Addr().String() },
			acquire, nil, false, "refused"},
		{"a server without TLS, and a dead one",
			func(u *url.URL) {
				with("sslmode", "require")(u)
				u.Host += "," + closed.Addr().String()
			},
			acquire, nil, false, "refuses TLS"},
		{"a dead server, and one without the role", func(u *url.URL) {
			role("traceflake_missing", "hunter2")(u)
			u.Host = closed.Addr().String() + "," + u.Host
		}, acquire, nil, false, "traceflake_missing"},
		{"a server that does not respond", host(silent.Addr().String()), acquire,
			context.DeadlineExceeded, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(u)
			}
			s, err := stores.Open(u.String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			timeout := 20 * time.Second
			if errors.Is(c.want, context.DeadlineExceeded) {
				timeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			err = c.call(ctx, s)
			if c.want == nil && c.text == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, c.name, err, c.want, c.text)
			if lease.Permanent(err) != c.permanent {
				t.Errorf("%q is permanent: %t, want %t", err, lease.Permanent(err), c.permanent)
			}
			for _, bad := range []string{"failed to connect", "server error", "SELECT count",
				"UPDATE \"", "%!"} {
				if strings.Contains(err.Error(), bad) {
					t.Errorf("error %q has %q", err, bad)
				}
			}
			for _, once := range []string{"does not exist", "connection refused",
				"permission denied", "password authentication", "lease:"} {
				if strings.Count(err.Error(), once) > 1 {
					t.Errorf("error %q says %q more than once", err, once)
				}
			}
		})
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
