// Package clickhouse tests the SQL of traceflake's package clickhouse on a real
// ClickHouse: functions, schemas, queries and adoption.
package clickhouse_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	_ "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestMain keeps the engine running between tests: it would start again for each.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "traceflake-")
	if err == nil {
		err = os.WriteFile(dir+"/users.xml", users(), 0o600)
	}
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"CONFIG": "testdata/engine.xml", "COLD": dir + "/cold/", "USERS": dir + "/users.xml"} {
		_ = os.Setenv("TRACEFLAKE_CLICKHOUSE_"+name, value) // fails for bad names only
	}
	e, err := servers.ClickHouse(context.Background())
	code := m.Run() // which says what is wrong with the engine
	if err == nil {
		err = e.Close()
	}
	_ = os.RemoveAll(dir)
	if code == 0 && err != nil && !errors.Is(err, child.ErrNotInstalled) {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// engine is a fresh database, and database/sql over it.
type engine struct {
	*servers.Engine
	t  *testing.T
	db *sql.DB
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{child.ForTest(t, servers.ClickHouse), t, nil}
	e.db = e.openAt(e.DSN())
	return e
}

// openAt returns database/sql at a DSN.
func (e *engine) openAt(dsn string) *sql.DB {
	e.t.Helper()
	db, err := sql.Open("clickhouse", dsn)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

// exec runs a statement and returns its rows.
func (e *engine) exec(statement string) [][]string {
	e.t.Helper()
	return e.Rows(e.t, statement)
}

// one returns the only value of a query.
func (e *engine) one(query string) string {
	e.t.Helper()
	rows := e.exec(query)
	if len(rows) != 1 || len(rows[0]) != 1 {
		e.t.Fatalf("%s: %d rows", query, len(rows))
	}
	return rows[0][0]
}

// is checks the only value of a query.
func (e *engine) is(want, query string) {
	e.t.Helper()
	if got := e.one(query); got != want {
		e.t.Errorf("%s: %s, want %s", query, got, want)
	}
}

// reads returns what a query reads with empty caches.
func (e *engine) reads(query string) servers.Reads {
	e.t.Helper()
	r, err := e.Reads(e.t.Context(), query)
	if err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
	return r.Read
}

// creates does what must not fail.
func (e *engine) creates(s clickhouse.Schema) {
	e.t.Helper()
	if err := s.Create(e.t.Context(), e.db); err != nil {
		e.t.Fatalf("%+v: %v", s, err)
	}
}

// run runs statements of the package.
func (e *engine) run(statements []string, err error) {
	e.t.Helper()
	e.Run(e.t, statements, err)
}

// fails runs a statement that must fail with a message.
func (e *engine) fails(statement, message string) {
	e.t.Helper()
	if _, err := e.Query(e.t.Context(), statement); err == nil || !strings.Contains(err.Error(), message) {
		e.t.Errorf("%s: error %v, want %q", statement, err, message)
	}
}

// empty drops all tables of the database but these.
func (e *engine) empty(but ...string) {
	e.t.Helper()
	for _, table := range e.column("SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name DESC") {
		if !slices.Contains(but, table) { // views first: their names are longer
			e.exec("DROP TABLE IF EXISTS `" + table + "` SYNC")
		}
	}
}
