package servers_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/integration/servers"
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

func query(t *testing.T, e *servers.Engine, sql string) servers.Result {
	t.Helper()
	r, err := e.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r
}

func TestQueryCounts(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	query(t, e, "CREATE TABLE t (a UInt64, b Nullable(String)) ENGINE = MergeTree ORDER BY a")
	query(t, e, "INSERT INTO t SELECT number, if(number = 5, NULL, 'x') FROM numbers(100000)")
	r := query(t, e, "SELECT a, b, 'it''s' AS c FROM t WHERE a BETWEEN 4 AND 5 ORDER BY a")
	if want := [][]string{{"4", "x", "it's"}, {"5", "ᴺᵁᴸᴸ", "it's"}}; !reflect.DeepEqual(r.Rows, want) {
		t.Errorf("rows %q, want %q", r.Rows, want)
	}
	if r.RowsRead != 8192 || r.BytesRead == 0 {
		t.Errorf("counts: %d rows, %d bytes", r.RowsRead, r.BytesRead)
	}
}

// TestClickHouseGo is what the Collector's exporter needs, and more types.
func TestClickHouseGo(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	for name, method := range map[string]clickhouse.CompressionMethod{
		"none": clickhouse.CompressionNone, "lz4": clickhouse.CompressionLZ4, "zstd": clickhouse.CompressionZSTD,
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, e, func(o *clickhouse.Options) { o.Compression = &clickhouse.Compression{Method: method} })
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
			if err := conn.Select(ctx, &empty, "SELECT * FROM spans"); err != nil || len(empty) != 0 {
				t.Fatalf("empty table: %d rows, %v", len(empty), err)
			}
			want := []row{
				{time.Unix(1, 2).UTC(), "\x00\x01\xff\xfe", map[string]string{"k": "é\x00\n'`\\", "": ""}, []string{"e", "f"}, []uint64{1, 2}},
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

func TestParametersAndSettings(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	conn := connect(t, e, nil)
	text := "tab\t'quote' \\back\\ \n{name:String}"
	ctx := clickhouse.Context(t.Context(),
		clickhouse.WithParameters(clickhouse.Parameters{"text": strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`).Replace(text), "n": "42"}),
		clickhouse.WithSettings(clickhouse.Settings{"max_threads": 3, "log_comment": "a 'b' \\"}))
	var (
		gotText, comment string
		n, threads       uint64
	)
	const sql = "SELECT {text:String}, {n:UInt64}, toUInt64(getSetting('max_threads')), getSetting('log_comment')"
	if err := conn.QueryRow(ctx, sql).Scan(&gotText, &n, &threads, &comment); err != nil {
		t.Fatal(err)
	}
	if gotText != text || n != 42 || threads != 3 || comment != `a 'b' \` {
		t.Errorf("got %q, %d, %d, %q", gotText, n, threads, comment)
	}
	if r := query(t, e, "SELECT getSetting('log_comment')"); r.Rows[0][0] != "" {
		t.Errorf("leaked into the next request: %q", r.Rows[0])
	}
}

func TestErrors(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	conn := connect(t, e, nil)
	for sql, code := range map[string]int32{
		"SELECT * FROM nope":                          60,
		"SELECT 1 SETTINGS nope = 1":                  115,
		"SELECT {x:UInt8}":                            456,
		"SELECT throwIf(number = 3) FROM numbers(10)": 395, // fails while it runs
	} {
		var exception *clickhouse.Exception
		if err := conn.Exec(t.Context(), sql); !errors.As(err, &exception) || exception.Code != code {
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
	e := servers.ClickHouseForTest(t)
	query(t, e, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
	u, err := url.Parse(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"database": {e.Database()}, "query": {"INSERT INTO t FORMAT CSV"}}.Encode()
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
	if got := query(t, e, "SELECT count() FROM t").Rows[0][0]; got != "100000" {
		t.Errorf("%s rows, want those of the whole INSERT", got)
	}
}

func TestUnreachable(t *testing.T) {
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "http://127.0.0.1:1")
	if _, err := servers.ClickHouse(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want an error with the address", err)
	}
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "clickhouse://127.0.0.1:9000")
	if _, err := servers.ClickHouse(t.Context()); err == nil || !strings.Contains(err.Error(), "HTTP interface") {
		t.Errorf("got %v, want an error that asks for the HTTP interface", err)
	}
}

// TestForeignServer runs an Engine against a server given by its DSN. The
// gateway of another Engine stands in for that server.
func TestForeignServer(t *testing.T) {
	server := servers.ClickHouseForTest(t)
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
	query(t, e, "CREATE TABLE t (a UInt8) ENGINE = Memory")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	left := query(t, server, "SELECT count() FROM system.databases WHERE name = '"+e.Database()+"'")
	if left.Rows[0][0] != "0" {
		t.Error("Close left the database behind")
	}
}
