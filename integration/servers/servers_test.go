package servers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

func connect(t *testing.T, e *servers.Engine, change func(*clickhouse.Options)) clickhouse.Conn {
	t.Helper()
	o, err := clickhouse.ParseDSN(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(o)
	}
	conn, err := clickhouse.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestClickHouseGo is what the Collector's exporter needs, and more types.
func TestClickHouseGo(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	for name, method := range map[string]clickhouse.CompressionMethod{
		"none": clickhouse.CompressionNone, "lz4": clickhouse.CompressionLZ4,
		"zstd": clickhouse.CompressionZSTD,
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, e,
				func(o *clickhouse.Options) { o.Compression = &clickhouse.Compression{Method: method} })
			ctx := t.Context()
			if err := conn.Ping(ctx); err != nil {
				t.Fatal(err)
			}
			if err := conn.Exec(ctx, `CREATE OR REPLACE TABLE spans (
				at DateTime64(9), id FixedString(4), attributes Map(LowCardinality(String), String),
				events Nested (name String, n UInt64)
			) ENGINE = MergeTree ORDER BY at`); err != nil {
				t.Fatal(err)
			}
			type row struct {
				At         time.Time         `ch:"at"`
				ID         string            `ch:"id"`
				Attributes map[string]string `ch:"attributes"`
				EventsName []string          `ch:"events.name"`
				EventsN    []uint64          `ch:"events.n"`
			}
			var empty []row
			if err := conn.Select(ctx, &empty, "SELECT * FROM spans"); err != nil ||
				len(empty) != 0 {
				t.Fatalf("empty table: %d rows, %v", len(empty), err)
			}
			want := []row{
				{time.Unix(1, 2).UTC(), "\x00\x01\xff\xfe",
					map[string]string{"k": "é\x00\n'`\\", "": ""}, []string{"e", "f"},
					[]uint64{1, 2}},
				{time.Unix(3, 4).UTC(), "abcd", map[string]string{}, []string{}, []uint64{}},
			}
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO spans")
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if err := batch.AppendStruct(&want[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			var got []row
			if err := conn.Select(ctx, &got, "SELECT * FROM spans ORDER BY at"); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].At = got[i].At.UTC() // another name for the same zone
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	conn := connect(t, e, nil)
	for sql, code := range map[string]int32{
		"SELECT * FROM nope":                          60,
		"SELECT 1 SETTINGS nope = 1":                  115,
		"SELECT {x:UInt8}":                            456,
		"SELECT throwIf(number = 3) FROM numbers(10)": 395, // fails while it runs
	} {
		var exception *clickhouse.Exception
		if err := conn.Exec(t.Context(), sql); !errors.As(err, &exception) ||
			exception.Code != code {
			t.Errorf("%s: %v, want exception %d", sql, err, code)
		}
	}
	wrong := connect(t, e, func(o *clickhouse.Options) { o.Auth.Password = "no" })
	if err := wrong.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestBrokenOffInsert: nothing of an INSERT whose client disconnects is stored.
func TestBrokenOffInsert(t *testing.T) {
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "")
	e := child.ForTest(t, servers.ClickHouse)
	e.Rows(t, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	u, err := url.Parse(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"database": {e.Database()},
		"query": {"INSERT INTO t FORMAT CSV"}}.Encode()
	u.Path = "/"
	for name, end := range map[string]error{"broken off": errors.New("broken off"), "whole": nil} {
		body, w := io.Pipe()
		go func() {
			for i := range 100_000 {
				if _, err := fmt.Fprintln(w, i); err != nil {
					return
				}
			}
			_ = w.CloseWithError(end)
		}()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), body)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != (end == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := e.Rows(t, "SELECT count() FROM t")[0][0]; got != "100000" {
		t.Errorf("%s rows, want those of the whole INSERT", got)
	}
}

// The error contains the address, but no password, or says which address is needed.
func TestUnreachable(t *testing.T) {
	for dsn, want := range map[string]string{"http://u:secret@127.0.0.1:1": "127.0.0.1:1",
		"clickhouse://127.0.0.1:9000": "HTTP interface"} {
		t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", dsn)
		if _, err := servers.ClickHouse(t.Context()); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", dsn, err, want)
		}
	}
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "postgres://u:secret@127.0.0.1:1/db")
	if _, err := servers.Postgres(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("PostgreSQL: got %v", err)
	}
}

// TestForeignServer runs an Engine, which counts what a query reads, against a server given by its
// DSN. The gateway of another Engine stands in for that server.
func TestForeignServer(t *testing.T) {
	server := child.ForTest(t, servers.ClickHouse)
	dsn, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	dsn.Path = ""
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", dsn.String())
	e, err := servers.ClickHouse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e.Database() == server.Database() {
		t.Error("no database of its own")
	}
	e.Rows(t, "CREATE TABLE t (a UInt64, b Nullable(String)) ENGINE = MergeTree ORDER BY a")
	e.Rows(t, "INSERT INTO t SELECT number, if(number = 5, NULL, 'x') FROM numbers(100000)")
	r, err := e.Query(t.Context(),
		"SELECT a, b, 'it''s' AS c FROM t WHERE a BETWEEN 4 AND 5 ORDER BY a")
	if want := [][]string{{"4", "x", "it's"}, {"5", "ᴺᵁᴸᴸ", "it's"}}; err != nil ||
		!reflect.DeepEqual(r.Rows, want) || r.Read.Rows != 8192 || r.Read.Bytes == 0 {
		t.Errorf("%+v, %v; want the rows %q of 8192", r, err, want)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	left := server.Rows(t, "SELECT count() FROM system.databases WHERE name = '"+e.Database()+"'")
	if left[0][0] != "0" {
		t.Error("Close left the database behind")
	}
}

func TestPostgresGivenByItsDSN(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN())
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

var nothing *servers.Result

// TestGoKeepsItsSignals: left to itself, libchdb takes SIGSEGV and others for its own, and this
// test ends the process.
func TestGoKeepsItsSignals(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	e.Rows(t, "SELECT sum(sipHash64(number)) FROM numbers_mt(1000000)")
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM)
	defer signal.Stop(got)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-got:
	case <-time.After(10 * time.Second):
		t.Error("SIGTERM did not arrive")
	}
	var panicked any
	func() {
		defer func() { panicked = recover() }()
		runtime.KeepAlive(nothing.Read.Rows)
	}()
	if _, ok := panicked.(runtime.Error); !ok {
		t.Errorf("a nil dereference gave %v, want a runtime error", panicked)
	}
	e.Rows(t, "SELECT 1") // the engine works on
}

// outcome records what happens to a test.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()      {}
func (o *outcome) Skip(...any)  { o.skipped = true }
func (o *outcome) Fatal(...any) { o.failed = true }

// A test without its engine is skipped, but never in CI.
func TestNotInstalled(t *testing.T) {
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "")
	t.Setenv("TRACEFLAKE_ENGINES", t.TempDir())
	_, err := servers.Postgres(t.Context())
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
		child.Started(&got,
			func(context.Context) (*servers.PostgresServer, error) { return nil, c.err })
		if got != c.want {
			t.Errorf("CI=%q, error %v: %+v, want %+v", c.ci, c.err, got, c.want)
		}
	}
}
