package servers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// connect opens a connection of clickhouse-go, which ends with the test.
func connect(t *testing.T, dsn string) clickhouse.Conn {
	t.Helper()
	options, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// What the Collector's exporter, which sends spans and reads none, does not test.
func TestClickHouseGo(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	conn, limited := connect(t, e.DSN()), connect(t, e.DSN()+"?limit=1&compress=lz4")
	err := conn.Exec(t.Context(), "SELECT throwIf(number = 3) FROM numbers(10)")
	if late, ok := errors.AsType[*clickhouse.Exception](err); !ok || late.Code != 395 {
		t.Errorf("a statement that fails while it runs: %v, want exception 395", err)
	}
	for sql, want := range map[string]int{
		"SELECT map(toLowCardinality('x'), 'y') AS x WHERE 0":             0,
		"SELECT map(toLowCardinality('x'), 'y') AS x FROM system.numbers": 1, // the setting
	} {
		var rows []struct {
			X map[string]string `ch:"x"`
		}
		if err := limited.Select(t.Context(), &rows, sql); err != nil || len(rows) != want {
			t.Errorf("%s: %d rows, want %d: %v", sql, len(rows), want, err)
		}
	}
	wrong := connect(t, strings.Replace(e.DSN(), "default:", "default:x", 1))
	if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestInsertedBytes inserts every pair of bytes: rows in the Native format may contain what ends a
// statement in a text.
func TestInsertedBytes(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	e.Rows(t, "CREATE TABLE pairs (n UInt16) ENGINE = Memory")
	batch, err := connect(t, e.DSN()).PrepareBatch(t.Context(), "INSERT INTO pairs")
	for n := 0; n < 65536 && err == nil; n++ {
		err = batch.Append(uint16(n))
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		t.Error(err)
	}
	if n := e.Rows(t, "SELECT uniqExact(n) FROM pairs")[0][0]; n != "65536" {
		t.Errorf("%s of 65536 values are stored", n)
	}
}

func TestPostgresGivenByItsDSN(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	t.Setenv("TRACEFLAKETEST_POSTGRES_DSN", server.DSN())
	other := child.ForTest(t, servers.Postgres)
	if _, err := other.Connect(t).Exec(t.Context(), "CREATE TABLE t (a int)"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var left int
	err := server.Connect(t).QueryRow(t.Context(),
		"SELECT count(*) FROM pg_database WHERE datname LIKE 'traceflake%'").Scan(&left)
	if err != nil || left != 1 {
		t.Errorf("%d databases after Close, want the server's one: %v", left, err)
	}
}

// outcome records what happens to a test.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()        {}
func (o *outcome) Cleanup(func()) {}
func (o *outcome) Skip(...any)    { o.skipped = true }
func (o *outcome) Fatal(...any)   { o.failed = true }

// A test without its engine is skipped, but never in CI.
func TestNotInstalled(t *testing.T) {
	t.Setenv("TRACEFLAKETEST_CLICKHOUSE_DSN", "")
	t.Setenv("TRACEFLAKETEST_CLICKHOUSE_VERSION", "0")
	_, err := servers.ClickHouse(t.Context())
	if !errors.Is(err, child.ErrNotInstalled) || !strings.Contains(err.Error(), "make engines") {
		t.Fatalf("got %v, want ErrNotInstalled and what to run", err)
	}
	for _, c := range []struct {
		ci   string
		err  error
		want outcome
	}{
		{"", nil, outcome{}},
		{"", err, outcome{skipped: true}},
		{"", errors.New("does not start"), outcome{failed: true}},
		{"true", err, outcome{failed: true}},
	} {
		t.Setenv("CI", c.ci)
		var got outcome
		child.ForTest(&got,
			func(context.Context) (*servers.Engine, error) { return nil, c.err })
		if got != c.want {
			t.Errorf("CI=%q, error %v: %+v, want %+v", c.ci, c.err, got, c.want)
		}
	}
}
