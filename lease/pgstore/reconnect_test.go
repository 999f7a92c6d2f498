package pgstore_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/stores"
)

// After a switchover the store leaves the old primary, which is read-only now and keeps its
// connections: the next call connects again.
func TestDemotedPrimary(t *testing.T) {
	dsn := database(t)
	admin := connect(t, dsn, nil)
	created(t, admin)
	set := func(readOnly string) { // of new sessions; others keep what they have
		execute(t, admin, "ALTER DATABASE "+
			value[string](t, admin, "SELECT quote_ident(current_database())")+
			" SET default_transaction_read_only = "+readOnly)
	}
	set("on")
	s := open(t, connect(t, dsn, nil))
	_, err := s.Acquire(t.Context(), calls.Request(time.Now()))
	wantError(t, "acquire on the old primary", err, nil, "25006")
	set("off")
	if _, err := s.Acquire(t.Context(), calls.Request(time.Now())); err != nil {
		t.Errorf("acquire after the switchover: %v", err)
	}
}

// The store reads the password file and the service file again for each connection: the
// password was rotated, and the service moved to another server.
func TestFilesAreReadAgain(t *testing.T) {
	u, err := url.Parse(database(t))
	if err != nil {
		t.Fatal(err)
	}
	admin := connect(t, u.String(), nil)
	execute(t, admin, "CREATE ROLE traceflake_rotated LOGIN PASSWORD 'hunter2'")
	t.Cleanup(func() { execute(t, admin, "DROP ROLE traceflake_rotated") })
	write := func(variable, text string) {
		path := filepath.Join(t.TempDir(), "file")
		if old := os.Getenv(variable); old != "" {
			path = old
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variable, path)
	}
	password := func(p string) { write("PGPASSFILE", "*:*:*:traceflake_rotated:"+p+"\n") }
	port := func(p string) { write("PGSERVICEFILE", "[leases]\nport="+p+"\n") }
	t.Setenv("PGPASSFILE", "")
	t.Setenv("PGSERVICEFILE", "")
	password("hunter2")
	port(u.Port())
	s, err := stores.Open("postgres://traceflake_rotated@" + u.Hostname() + u.Path +
		"?service=leases&" + u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	connects := func() error {
		_, err := s.Time(t.Context())
		return err
	}
	if err := connects(); err != nil {
		t.Fatal(err)
	}
	execute(t, admin, "ALTER ROLE traceflake_rotated PASSWORD 'hunter3'")
	for _, c := range []struct {
		what, want string
		rotate     func()
	}{
		{"the new password", "", func() { password("hunter3") }},
		{"a port where no server is", "connection refused", func() { port("1") }},
		{"the server's port", "", func() { port(u.Port()) }},
	} {
		c.rotate()
		execute(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
			"WHERE usename = 'traceflake_rotated'")
		_ = connects() // on the connection that was terminated
		err := connects()
		if c.want == "" && err != nil ||
			c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("with %s: %v, want %q", c.what, err, c.want)
		}
	}
}
