package servers

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// ClickHouseForTest returns an Engine for a test: see [child.ForTest].
func ClickHouseForTest(tb testing.TB) *Engine {
	tb.Helper()
	return child.ForTest(tb, ClickHouse)
}

// PostgresForTest returns a PostgresServer for a test: see [child.ForTest].
func PostgresForTest(tb testing.TB) *PostgresServer {
	tb.Helper()
	return child.ForTest(tb, Postgres)
}

// OnePostgres runs tests with one PostgreSQL, in which each [PostgresForTest] is a database. It returns
// the status for os.Exit.
func OnePostgres(m *testing.M) int {
	server, err := Postgres(context.Background())
	if err != nil { // each test skips or fails
		return m.Run()
	}
	defer func() { _ = server.Close() }()
	if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
		panic(err)
	}
	return m.Run()
}

// Rows runs a statement for a test, which fails if the statement does, and returns its rows.
func (e *Engine) Rows(tb testing.TB, statement string) [][]string {
	tb.Helper()
	r, err := e.Query(tb.Context(), statement)
	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	return r.Rows
}

// Run runs the statements that a function returned.
func (e *Engine) Run(tb testing.TB, statements []string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	for _, statement := range statements {
		e.Rows(tb, statement)
	}
}

// Connect returns a connection for a test, closed when the test ends.
func (s *PostgresServer) Connect(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.DSN())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
