// Package postgres has only tests: they compare the SQL functions of package postgres in a real
// PostgreSQL with Go's results for the same IDs.
package postgres_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/contrib/postgres"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

func TestMain(m *testing.M) { os.Exit(servers.OnePostgres(m)) }

// database is a connection to a new database.
type database struct {
	t    *testing.T
	conn *pgx.Conn
}

// functions returns a database with our functions.
func functions(t *testing.T) database {
	t.Helper()
	d := database{t, child.ForTest(t, servers.Postgres).Connect(t)}
	d.exec("SET synchronous_commit = off")
	d.create("")
	return d
}

func (d database) create(schema string) {
	d.t.Helper()
	for _, s := range postgres.Statements(schema) {
		d.exec(s)
	}
}

func (d database) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatalf("%v in\n%s", err, sql)
	}
}

// texts returns the only column of a query as text.
func (d database) texts(sql string, args ...any) []string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), "SELECT coalesce(c::pg_catalog.text, 'NULL') FROM ("+
		sql+") AS q (c)", args...)
	if err == nil {
		var texts []string
		if texts, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil {
			return texts
		}
	}
	d.t.Fatalf("%v in\n%s", err, sql)
	return nil
}

// want checks the only value of a query.
func (d database) want(want, sql string) {
	d.t.Helper()
	if got := d.texts(sql); !slices.Equal(got, []string{want}) {
		d.t.Errorf("got %q, want %q from\n%s", got, want, sql)
	}
}

// same checks an expression for each of the inputs, which are its column v.
func (d database) same(expression string, inputs []string, want func(i int) string) {
	d.t.Helper()
	got := d.texts("SELECT "+expression+
		" FROM unnest($1::text[]) WITH ORDINALITY AS i (v, n) ORDER BY n", inputs)
	if len(got) != len(inputs) {
		d.t.Fatalf("%s: %d values for %d inputs", expression, len(got), len(inputs))
	}
	for i, g := range got {
		if w := want(i); g != w {
			d.t.Fatalf("%s of %q is %s, want %s", expression, inputs[i], g, w)
		}
	}
}

func (d database) plan(sql string) string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), "EXPLAIN (VERBOSE, COSTS OFF) "+sql)
	if err != nil {
		d.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
