package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// After a switchover the store leaves the old primary, which is read-only now and keeps its
// connections: the next call connects again.
func TestDemotedPrimary(t *testing.T) {
	dsn, admin := newDatabase(t)
	first, o := write(t, calls.Objects(t, dsn), "page-0000", "1", ""), calls.Objects(t, dsn)
	set := func(readOnly string) { // of new sessions; others keep what they have
		execute(t, admin, "ALTER DATABASE "+admin.Config().ConnConfig.Database+
			" SET default_transaction_read_only = "+readOnly)
	}
	set("on")
	_, err := calls.Write(t.Context(), o, "page-0000", "2", first.Version)
	wantError(t, "write on the old primary", err, nil, "25006")
	set("off")
	write(t, o, "page-0000", "2", first.Version)
}

// again returns an error unless the store connects again, as a role whose sessions are ended.
func again(t *testing.T, admin *pgxpool.Pool, role string, s stores.Store) error {
	t.Helper()
	execute(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
		"WHERE usename = '"+role+"'")
	_, _ = s.Time(t.Context()) // on the connection that was terminated
	_, err := s.Time(t.Context())
	return err
}

// The store reads the password file and the service file again for each connection: the
// password was rotated, and the service moved to another server.
func TestFilesAreReadAgain(t *testing.T) {
	dsn, admin := newDatabase(t)
	role, dir, config := newRole(t, admin), t.TempDir(), admin.Config().ConnConfig
	files := func(password string, port any) {
		for variable, text := range map[string]string{
			"PGPASSFILE":    "*:*:*:" + role + ":" + password,
			"PGSERVICEFILE": fmt.Sprint("[leases]\nport=", port),
		} {
			path := filepath.Join(dir, variable)
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(variable, path)
		}
	}
	files("hunter2", config.Port)
	_, parameters, _ := strings.Cut(dsn, "?")
	s := calls.Open(t, "postgres://"+role+"@"+config.Host+"/"+config.Database+
		"?service=leases&"+parameters)
	if _, err := s.Time(t.Context()); err != nil {
		t.Fatal(err)
	}
	// as long tokens of clouds have them
	execute(t, admin, "ALTER ROLE "+role+` PASSWORD 'host:5432/?Action=connect&X=hunter3\'`)
	files(`host\:5432/?Action=connect&X=hunter3\\`, config.Port)
	if err := again(t, admin, role, s); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	files("hunter3", 1)
	wantError(t, "a port where no server is", again(t, admin, role, s), nil, "connection refused")
}

// A hook of the program sets the password of each connection.
func TestHook(t *testing.T) {
	dsn, admin := newDatabase(t)
	role := newRole(t, admin)
	config, err := pgxpool.ParseConfig(dsn + "&user=" + role + "&password=wrong")
	if err != nil {
		t.Fatal(err)
	}
	password := ""
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		c.Password = password
		return nil
	}
	s, err := pgstore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, password = range []string{"hunter2", "hunter3"} {
		execute(t, admin, "ALTER ROLE "+role+" PASSWORD '"+password+"'")
		if err := again(t, admin, role, s); err != nil {
			t.Errorf("with the password of the hook: %v", err)
		}
	}
}
