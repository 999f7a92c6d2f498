package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/setup"
)

// use makes run connect to a server that the test can query too.
func use(t *testing.T, engine *servers.Engine, through func(http.Handler) http.Handler) {
	t.Helper()
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	dsn.Path = ""
	if through != nil {
		proxy := httptest.NewServer(through(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: dsn.Host})))
		t.Cleanup(proxy.Close)
		dsn.Host = strings.TrimPrefix(proxy.URL, "http://")
	}
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", dsn.String())
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where the default store is on Linux
	t.Setenv("HOME", t.TempDir())           // on other systems
}

// output runs the demo and returns what it prints.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return out.String()
}

func contains(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("no %q in:\n%s", p, text)
		}
	}
}

// With a day of history the order pays, and the output shows how much.
func TestRun(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), nil)
	out := output(t, "-history", "400000", "-requests", "64")
	contains(t, out,
		`History +400000 spans since midnight UTC`, `22 from a client without headers`, `21 from a new app`,
		`all 64 traces are stored under the expected IDs, with all of their 613 spans`,
		`Find +trace [0-9a-f]{32}, started by edge for a client without headers`,
		`(?m)^edge +POST /checkout +\d+\.\d\d ms  ━{40,50}$`, `(?m)^orders {10}compute tax +\d+\.\d\d ms +━+$`,
		`12 spans in `, `Decoded: node \d+, second 20.*Z, sequence \d+`, `Spans +613 stored, 0 lost`)
	rows := regexp.MustCompile(`(?m)^  (?:rows read|megabytes).*? +([\d.]+) +([\d.]+)$`).FindAllStringSubmatch(out, -1)
	if len(rows) != 6 {
		t.Fatalf("%d rows of costs:\n%s", len(rows), out)
	}
	for i, atLeast := range []float64{5, 5, 0.5, 0.5, 5, 4} { // one trace: rows, megabytes; before the merge; 64 traces
		ours, err := strconv.ParseFloat(rows[i][1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if exporter, err := strconv.ParseFloat(rows[i][2], 64); err != nil || exporter < atLeast*ours {
			t.Errorf("%s: less than %g times as much in the exporter's schema, %v", rows[i][0], atLeast, err)
		}
	}
}

func TestCheckDetectsEachFault(t *testing.T) {
	id, parent := trace.TraceID{1}, trace.SpanID{7}
	n := routes[0].spans
	good := summary{id.String(), n, n, 2, parent.String()}
	for want, stored := range map[string][]summary{
		"":                        {good},
		"are not stored":          {},
		"was not sent":            {good, {TraceID: trace.TraceID{2}.String()}},
		"Spans:11":                {{id.String(), n - 1, n - 1, 2, parent.String()}},
		"Distinct:11":             {{id.String(), n, n - 1, 2, parent.String()}},
		"Services:1":              {{id.String(), n, n, 1, parent.String()}},
		"Parent:0800000000000000": {{id.String(), n, n, 2, "0800000000000000"}},
	} {
		_, err := check([]request{{route: routes[0], id: id, parent: parent}}, stored)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestDraw(t *testing.T) {
	start := time.Now()
	at := func(ms int, id, parent string, took time.Duration) span {
		return span{Timestamp: start.Add(time.Duration(ms) * time.Millisecond), SpanID: id, ParentSpanID: parent, Duration: uint64(took)}
	}
	ms := time.Millisecond
	d := draw([]span{
		at(6, "d", "b", 2*ms), at(0, "a", "elsewhere", 10*ms), at(2, "b", "a", 7*ms), at(3, "c", "b", 2*ms), at(2, "b2", "b", ms),
		at(9, "e", "a", 0), at(9, "own", "own", ms), at(10, "f", "late", 0), at(11, "late", "f", 0),
	})
	var got strings.Builder
	for _, l := range d.Lines {
		got.WriteString(strings.Repeat(">", l.Depth) + l.SpanID + " ")
	}
	if want := "a >b >>b2 >>c >>d >e own f >late "; got.String() != want {
		t.Errorf("got %q, want %q", &got, want)
	}
	if b, e := d.Lines[1], d.Lines[5]; d.Total != 11*ms || b.Left < 18 || b.Left > 19 || b.Width < 63 || b.Width > 64 || e.Width < 0.4 {
		t.Errorf("%s, bars %+v and %+v", d.Total, b, e)
	}
}

func TestLostSpansAreReported(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") {
				w.Header().Set("X-ClickHouse-Exception-Code", "243")
				http.Error(w, "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)", http.StatusInternalServerError)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	var out bytes.Buffer
	err := run(t.Context(), []string{"-history", "0", "-requests", "6"}, &out)
	if !errors.Is(err, errLost) || !strings.Contains(err.Error(), "not enough space") {
		t.Errorf("got %v, want errLost and the reason", err)
	}
	contains(t, out.String(), `0 stored, [1-9]\d* lost`)
}

func TestStores(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(setup.SecretFileVar, secret)
	for _, c := range []struct {
		name  string
		store func(t *testing.T) string
		want  []string
	}{
		{"PostgreSQL", func(t *testing.T) string {
			dsn := servers.PostgresForTest(t).DSN()
			keyring, err := setup.LoadKeyring(secret)
			if err != nil {
				t.Fatal(err)
			}
			servers.CreateStore(t, dsn, keyring.Codec())
			return dsn
		},
			[]string{`Decoded: node \d+, second 20.*Z, sequence \d+`}},
		{"a server that is down", func(*testing.T) string { return "postgres://me:hunter2@127.0.0.1:1/db" },
			[]string{`Note +lease: open the store: pgstore: .*connection refused`, `Decoded: nothing`, `IDs +57 traces or spans got random IDs`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(setup.StoreVar, c.store(t))
			out := output(t, "-history", "0", "-requests", "6")
			contains(t, out, append(c.want, `all 6 traces are stored`, `57 stored, 0 lost`)...)
			if strings.Contains(out, "hunter2") {
				t.Errorf("the password is in the output:\n%s", out)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	t.Setenv(setup.StoreVar, "")
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "http://127.0.0.1:1")
	taken, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for want, args := range map[string][]string{
		"127.0.0.1:1":             {},
		"neither can be negative": {"-history", "-1"},
		"nothing to do":           {"-requests", "0"},
		`unexpected argument "x"`: {"x"},
		"missing port":            {"-serve", "8080"},
		"address already in use":  {"-serve", taken.Addr().String()},
		`invalid value "many"`:    {"-requests", "many"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
