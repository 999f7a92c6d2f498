package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/postgres"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run starts one server for all tests; each test has its own database.
func run(m *testing.M) int {
	server, err := servers.Postgres(context.Background())
	switch {
	case errors.Is(err, servers.ErrNotInstalled): // each test skips or fails
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		defer func() { _ = server.Close() }()
		if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// database is a connection to a new database.
type database struct {
	t    *testing.T
	conn *pgx.Conn
}

// empty returns a database without our functions; functions returns one with them.
func empty(t *testing.T) database {
	t.Helper()
	server := servers.PostgresForTest(t)
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	d := database{t, conn}
	d.exec("SET synchronous_commit = off")
	return d
}

func functions(t *testing.T) database {
	t.Helper()
	db := empty(t)
	db.create("")
	return db
}

func (d database) create(schema string) {
	d.t.Helper()
	statements, err := postgres.Statements(schema)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range statements {
		d.exec(s)
	}
}

func (d database) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatalf("%v in\n%s", err, sql)
	}
}

// column returns the only column of a query.
func column[T any](d database, sql string, args ...any) []T {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), sql, args...)
	if err != nil {
		d.t.Fatalf("%v in\n%s", err, sql)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		d.t.Fatalf("%v in\n%s", err, sql)
	}
	return values
}

// one returns the only value of a query.
func one[T any](d database, sql string, args ...any) T {
	d.t.Helper()
	values := column[T](d, sql, args...)
	if len(values) != 1 {
		d.t.Fatalf("%d rows, want 1, from\n%s", len(values), sql)
	}
	return values[0]
}

func (d database) plan(sql string) string {
	d.t.Helper()
	return strings.Join(column[string](d, "EXPLAIN (COSTS OFF) "+sql), "\n")
}

// same compares the results of SQL with those of Go, in order; nil is NULL.
func same[T any](t *testing.T, what string, inputs []string, got []*T, want func(i int) *T) {
	t.Helper()
	if len(got) != len(inputs) {
		t.Fatalf("%s: %d values for %d inputs", what, len(got), len(inputs))
	}
	wrong := 0
	for i, g := range got {
		if w := want(i); show(g) != show(w) {
			if wrong++; wrong <= 5 {
				t.Errorf("%s(%q) is %s, want %s", what, inputs[i], show(g), show(w))
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%s: %d of %d are wrong", what, wrong, len(got))
	}
}

func show[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(*v)
}
