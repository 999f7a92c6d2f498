package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

func TestMain(m *testing.M) {
	etcd.Main()
	os.Exit(m.Run())
}

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

func TestRun(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), nil)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-history", "0", "-requests", "66"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`22 from an old app`,
		`22 from a new app .*, 2 of them unsampled`,
		`22 from a client without headers`,
		`all 64 sampled traces are stored under the expected IDs, with all of their \d+ spans; none of the 2 unsampled ones is stored`,
		`Find +trace [0-9a-f]{32}, made by edge for a client without headers`,
		`(?m)^edge    POST /checkout +\d+\.\d\d ms  ━+$`,
		`(?m)^orders  │   │ └ compute tax +\d+\.\d\d ms   +━+$`,
		`15 spans in `,
		`(?m)^  One trace by its ID +sorted by trace ID +the Collector's own schema$`,
		`Spans +\d+ stored, 0 lost`,
		`Decoded: node \d+, second 20.*Z, sequence \d+`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no %q in the output", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// With a day of history the order pays, and the output shows how much.
func TestHistory(t *testing.T) {
	engine := servers.ClickHouseForTest(t)
	use(t, engine, nil)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-history", "400000", "-requests", "30"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	rows := regexp.MustCompile(`(?m)^  (?:granules|megabytes) +([\d.]+) +([\d.]+)$`).FindAllStringSubmatch(out.String(), -1)
	if len(rows) != 4 {
		t.Fatalf("%d rows of costs:\n%s", len(rows), &out)
	}
	for i, atLeast := range []float64{1.9, 5, 1, 4} { // one trace: granules, megabytes; 100 traces
		ours, err := strconv.ParseFloat(rows[i][1], 64)
		if err != nil {
			t.Fatal(err)
		}
		exporter, err := strconv.ParseFloat(rows[i][2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if exporter < atLeast*ours {
			t.Errorf("%s: less than %g times as much in the exporter's schema", rows[i][0], atLeast)
		}
	}
	for _, want := range []string{
		`History +400000 spans since midnight UTC`, `Each table holds (39|40)\d{4} spans. Parts: \d+ sorted`, `OPTIMIZE FINAL`, `100 traces of the last five minutes`, `all 29 sampled traces are stored`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestClients sends by hand what each client sends, and queries the Collector's table directly.
func TestClients(t *testing.T) {
	engine := servers.ClickHouseForTest(t)
	use(t, engine, nil)
	demo := startDemo(t, "-requests", "0")
	database := demo.find(`database (\S+)`)

	made, parent := idgen.New().NewIDs(t.Context())
	foreign := "463ac35c9f6413ad48485a3953bb6124"
	for _, c := range []struct {
		name, want, parent string
		headers            map[string]string
	}{
		{"old", made.String(), parent.String(), map[string]string{
			"x-trace-id": made.String(), "X-B3-TraceId": made.String()[16:], "X-B3-SpanId": parent.String(), "X-B3-Sampled": "1"}},
		{"new", foreign, "00000000000000aa", map[string]string{
			"x-trace-id": foreign, "X-B3-TraceId": foreign, "X-B3-SpanId": "00000000000000aa", "X-B3-Sampled": "1"}},
		{"no headers", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now().Add(-time.Second)
			header, _ := get(t, http.MethodPost, demo.edge+"/checkout", c.headers)
			id := header.Get("x-trace-id")
			if c.want != "" && id != c.want {
				t.Errorf("x-trace-id %s, want %s", id, c.want)
			}
			if tid, err := trace.TraceIDFromHex(id); err != nil || c.want == "" && traceid.Time(tid).Before(began) {
				t.Errorf("x-trace-id %q: %v", id, err)
			}
			_, page := get(t, http.MethodGet, demo.page+"/traces/"+id, nil) // this also flushes the services' spans
			if !strings.Contains(page, "publish order.created") || !strings.Contains(page, "15 spans") {
				t.Errorf("waterfall:\n%s", page)
			}
			r, err := engine.Query(t.Context(), fmt.Sprintf(
				"SELECT count(), anyIf(ParentSpanId, SpanKind = 'Server' AND ServiceName = 'edge'), uniqExactIf(SpanId, ServiceName = 'orders') FROM %s.otel_traces WHERE TraceId = '%s'",
				database, id))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(r.Rows[0], " "), "15 "+c.parent+" 9"; got != want {
				t.Errorf("spans, parent, spans of orders: %q, want %q", got, want)
			}
		})
	}
	_, page := get(t, http.MethodGet, demo.page+"/traces/"+strings.Repeat("1", 32), nil)
	if !strings.Contains(page, "found no trace 1111") {
		t.Errorf("unknown trace: %s", page)
	}

	if log := demo.end(); !strings.Contains(log, "45 stored, 0 lost") {
		t.Errorf("want 45 spans stored:\n%s", log)
	}
}

// demo is a run of the demo that serves the page.
type demo struct {
	t          *testing.T
	edge, page string
	log        bytes.Buffer
	began      string // the log until serving started
	interrupt  func()
	ended      chan error
	rest       chan struct{}
}

func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	d := &demo{t: t, interrupt: cancel, ended: make(chan error, 1), rest: make(chan struct{})}
	go func() {
		err := run(ctx, append([]string{"-history", "0", "-serve", loopback + ":0"}, args...), writer)
		d.ended <- errors.Join(err, writer.Close())
	}()
	d.page = waitFor(t, io.TeeReader(reader, &d.log), `curl (http://\S+)/traces/`)
	d.began = d.log.String()
	d.edge = d.find(`POST (http://\S+)/checkout`)
	go func() {
		_, _ = io.Copy(&d.log, reader)
		close(d.rest)
	}()
	return d
}

// find searches the log until serving started.
func (d *demo) find(pattern string) string {
	m := regexp.MustCompile(pattern).FindStringSubmatch(d.began)
	if m == nil {
		d.t.Fatalf("no %q in:\n%s", pattern, d.began)
	}
	return m[1]
}

// end interrupts the demo and returns its whole log.
func (d *demo) end() string {
	d.interrupt()
	if err := <-d.ended; err != nil {
		d.t.Errorf("run ended with %v after the interrupt", err)
	}
	<-d.rest
	return d.log.String()
}

// waitFor reads until the text matches, and returns the first group.
func waitFor(t *testing.T, r io.Reader, pattern string) string {
	t.Helper()
	var text []byte
	buffer := make([]byte, 1024)
	for {
		n, err := r.Read(buffer)
		text = append(text, buffer[:n]...)
		if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
			return string(m[1])
		}
		if err != nil {
			t.Fatalf("%v before %q:\n%s", err, pattern, text)
		}
	}
}

func get(t *testing.T, method, url string, headers map[string]string) (http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header, string(body)
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
	if !regexp.MustCompile(`0 stored, [1-9]\d* lost`).Match(out.Bytes()) {
		t.Errorf("no lost spans in the output:\n%s", &out)
	}
}

func TestStores(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACEFLAKE_SECRET_FILE", secret)
	const leased = `Decoded: node \d+, second 20.*Z, sequence \d+`
	for _, c := range []struct {
		name  string
		store func(t *testing.T) string
		want  []string
	}{
		{"PostgreSQL", func(t *testing.T) string { return servers.PostgresForTest(t).DSN() }, []string{leased}},
		{"etcd", func(t *testing.T) string { return "etcd://" + strings.Join(etcd.ForTest(t, 1).Endpoints(), ",") }, []string{leased}},
		{"a server that is down", func(*testing.T) string { return "postgres://me:hunter2@127.0.0.1:1/db" },
			[]string{`Note +lease: acquire: pgstore: .*connection refused`, `Decoded: nothing`, `IDs +69 traces or spans got random IDs`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(setup.StoreVar, c.store(t))
			var out bytes.Buffer
			if err := run(t.Context(), []string{"-history", "0", "-requests", "6"}, &out); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range append(c.want, `all 6 sampled traces are stored`, `69 stored, 0 lost`) {
				if !regexp.MustCompile(want).Match(out.Bytes()) {
					t.Errorf("no %q in:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "hunter2") {
				t.Errorf("the password is in the output:\n%s", &out)
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
		"-requests -1":            {"-requests", "-1"},
		"-history -1":             {"-history", "-1"},
		"nothing to do":           {"-requests", "0"},
		`unexpected argument "x"`: {"x"},
		"want host:port":          {"-serve", "8080"},
		"cannot serve on":         {"-serve", taken.Addr().String()},
		`invalid value "many"`:    {"-requests", "many"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
