package servers_test

import (
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

func TestPostgresGivenByItsDSN(t *testing.T) {
	server := servers.PostgresForTest(t)
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN())
	other := servers.PostgresForTest(t)
	if _, err := other.Connect(t).Exec(t.Context(), "CREATE TABLE t (a int)"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var left int
	err := server.Connect(t).QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'traceflake%'").Scan(&left)
	if err != nil || left != 1 {
		t.Errorf("%d databases after Close, want the server's one: %v", left, err)
	}
}

func TestPostgresUnreachable(t *testing.T) {
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "postgres://u:secret@127.0.0.1:1/db")
	_, err := servers.Postgres(t.Context())
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error with the address and without the password", err)
	}
}
