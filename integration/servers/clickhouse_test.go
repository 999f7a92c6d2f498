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
	if want := []string{"a", "b", "c"}; !reflect.DeepEqual(r.Columns, want) {
		t.Errorf("columns %q, want %q", r.Columns, want)
	}
	if r.RowsRead != 8192 || r.BytesRead == 0 || r.Elapsed <= 0 {
		t.Errorf("counts: %d rows, %d bytes, %v", r.RowsRead, r.BytesRead, r.Elapsed)
	}
}

func TestEnginesAreSeparateDatabases(t *testing.T) {
	a, b := servers.ClickHouseForTest(t), servers.ClickHouseForTest(t)
	for _, e := range []*servers.Engine{a, b} {
		query(t, e, "CREATE TABLE same (x UInt8) ENGINE = MergeTree ORDER BY x")
	}
	query(t, a, "INSERT INTO same VALUES (1)")
	if got := query(t, b, "SELECT count() FROM same").Rows[0][0]; got != "0" {
		t.Errorf("the second database sees %s rows, want 0", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Query(t.Context(), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "Code: 81.") {
		t.Errorf("query after Close: %v, want unknown database", err)
	}
	query(t, b, "SELECT * FROM same")
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
	// Neither settings nor USE may leak into the next request, on whatever connection.
	for range 10 {
		if err := conn.Exec(t.Context(), "USE system"); err != nil {
			t.Fatal(err)
		}
		r := query(t, e, "SELECT getSetting('log_comment'), currentDatabase()")
		if r.Rows[0][0] != "" || r.Rows[0][1] != e.Database() {
			t.Fatalf("leaked: %q", r.Rows[0])
		}
	}
}

func TestErrors(t *testing.T) {
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "") // the gateway's own answers
	e := servers.ClickHouseForTest(t)
	query(t, e, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
	post := func(query url.Values, body string, change func(*http.Request)) (int, string, string) {
		u, err := url.Parse(e.DSN())
		if err != nil {
			t.Fatal(err)
		}
		u.Path, u.RawQuery = "/", query.Encode()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header.Get("X-ClickHouse-Exception-Code"), string(text)
	}
	database := url.Values{"database": {e.Database()}}
	with := func(name, value string) url.Values {
		v := url.Values{"database": {e.Database()}}
		v.Set(name, value)
		return v
	}
	for _, c := range []struct {
		name   string
		query  url.Values
		body   string
		change func(*http.Request)
		code   string
		text   string
	}{
		{"unknown table", database, "SELECT * FROM nope", nil, "60", "UNKNOWN_TABLE"},
		{"unknown database", url.Values{"database": {"nope`"}}, "SELECT 1", nil, "81", "nope"},
		{"unknown setting", with("nope", "1"), "SELECT 1", nil, "115", "UNKNOWN_SETTING"},
		{"missing parameter", database, "SELECT {x:UInt8}", nil, "456", "`x`"},
		{"fails while it runs", database, "SELECT throwIf(number = 3) FROM numbers(10)", nil, "395", "throwIf"},
		{"rows of another format", with("query", "INSERT INTO t FORMAT CSV"), "nan\n", nil, "117", "Expected end of line"},
		{"broken Native rows", with("query", "INSERT INTO t FORMAT Native"), "\x01\x05\x01a\x05UInt8\x01", nil, "33", "Cannot read all data"},
		{"SET", database, "/* c */ set max_threads = 1", nil, "48", "URL parameters"},
		{"session", with("session_id", "1"), "SELECT 1", nil, "48", "sessions"},
		{"wrong password", database, "SELECT 1", func(r *http.Request) { r.URL.User = url.UserPassword("default", "no") }, "516", "password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, code, text := post(c.query, c.body, c.change)
			if status != http.StatusInternalServerError || code != c.code || !strings.Contains(text, c.text) || !strings.HasPrefix(text, "Code: "+c.code+". DB::Exception: ") {
				t.Errorf("status %d, code %s, %q; want %s, %q", status, code, text, c.code, c.text)
			}
		})
	}
	if got := query(t, e, "SELECT count() FROM t").Rows[0][0]; got != "0" {
		t.Errorf("%s rows after failed inserts, want 0", got)
	}

	var exception *clickhouse.Exception
	if err := connect(t, e, nil).Exec(t.Context(), "SELECT * FROM nope"); !errors.As(err, &exception) || exception.Code != 60 {
		t.Errorf("clickhouse-go gives %v, want exception 60", err)
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
	e := servers.ClickHouseForTest(t)
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
