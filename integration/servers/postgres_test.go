package servers_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

func TestPostgres(t *testing.T) {
	server := servers.PostgresForTest(t)
	conn := server.Connect(t)
	var durable string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('fsync') || current_setting('synchronous_commit')").Scan(&durable); err != nil {
		t.Fatal(err)
	}
	if durable != "onon" {
		t.Errorf("fsync and synchronous_commit are %q, want on and on", durable)
	}

	t.Run("given by its DSN", func(t *testing.T) {
		t.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN())
		other := servers.PostgresForTest(t)
		if _, err := other.Connect(t).Exec(t.Context(), "CREATE TABLE t (a int)"); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(other.DSN())
		if err != nil {
			t.Fatal(err)
		}
		var left int
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname = $1", u.Path[1:]).Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("%d databases left after Close, %v", left, err)
		}
	})

	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the server answers after Close")
	}
}

func TestPostgresUnreachable(t *testing.T) {
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "postgres://u:secret@127.0.0.1:1/db")
	_, err := servers.Postgres(t.Context())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error with the address and without the password", err)
	}
}
