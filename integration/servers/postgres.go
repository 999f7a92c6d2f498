package servers

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// PostgresServer is a fresh database on a PostgreSQL. It is safe for concurrent use.
type PostgresServer struct{ database }

const postgresVar = "TRACEFLAKETEST_POSTGRES_DSN"

// Postgres returns a fresh database on its own PostgreSQL, or on the server of
// TRACEFLAKETEST_POSTGRES_DSN. The error is [child.ErrNotInstalled] if neither is available.
//
// The server keeps PostgreSQL's durable defaults, so a commit takes as long as this machine's disk.
func Postgres(ctx context.Context) (*PostgresServer, error) {
	start := func(ctx context.Context) (*child.Server, string, error) {
		p, err := StartPostgres(ctx)
		if err != nil {
			return nil, "", err
		}
		return p.Server, p.DSN(), nil
	}
	d, err := kind{postgresVar, start, execPostgres, " WITH (FORCE)"}.create(ctx)
	return &PostgresServer{d}, err
}

// execPostgres runs statements on a connection of their own.
func execPostgres(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err // with the address, without the password
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// OnePostgres runs tests with one PostgreSQL, in which each [Postgres] is a database. It returns
// the status for os.Exit.
func OnePostgres(m *testing.M) int {
	server, err := Postgres(context.Background())
	if err != nil { // each test skips or fails
		return m.Run()
	}
	defer func() { _ = server.Close() }()
	if err := os.Setenv(postgresVar, server.DSN()); err != nil {
		panic(err)
	}
	return m.Run()
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
