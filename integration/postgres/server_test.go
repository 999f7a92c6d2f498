// Package postgres has only tests: they compare the SQL functions of package postgres in a real
// PostgreSQL with Go's results for the same IDs.
package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/postgres"
)

// TestMain starts one server for all tests; each test has its own database.
func TestMain(m *testing.M) {
	server, err := servers.Postgres(context.Background())
	if err != nil { // each test skips or fails
		os.Exit(m.Run())
	}
	if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = server.Close()
	os.Exit(code)
}

// database is a connection to a new database.
type database struct {
	t    *testing.T
	conn *pgx.Conn
}

// empty returns a database without our functions; functions returns one with them.
func empty(t *testing.T) database {
	t.Helper()
	d := database{t, servers.PostgresForTest(t).Connect(t)}
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
	if err == nil {
		var values []T
		if values, err = pgx.CollectRows(rows, pgx.RowTo[T]); err == nil {
			return values
		}
	}
	d.t.Fatalf("%v in\n%s", err, sql)
	return nil
}

// each returns the value of an expression for each of the inputs, which are its column v.
func each[T any](d database, expression string, inputs []string) []T {
	d.t.Helper()
	return column[T](d, "SELECT "+expression+" FROM unnest($1::text[]) WITH ORDINALITY AS i (v, n) ORDER BY n", inputs)
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
	for i, g := range got {
		if w := want(i); show(g) != show(w) {
			t.Fatalf("%s(%q) is %s, want %s", what, inputs[i], show(g), show(w))
		}
	}
}

func show[T any](v *T) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(*v)
}

func null[T any](int) *T { return nil }
