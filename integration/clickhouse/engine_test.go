// Package clickhouse tests the SQL of traceflake's package clickhouse on a real
// ClickHouse: functions, schemas, queries and adoption.
package clickhouse_test

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/ClickHouse/clickhouse-go/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestMain configures the engines.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "traceflake-")
	if err == nil {
		err = os.WriteFile(dir+"/users.xml", []byte(users()), 0o600)
	}
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"CONFIG": "testdata/engine.xml",
		"COLD": dir + "/cold/", "USERS": dir + "/users.xml"} {
		_ = os.Setenv("TRACEFLAKETEST_CLICKHOUSE_"+name, value) // fails for bad names only
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
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

// creates runs a schema's Create, which must not fail.
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
	if _, err := e.Query(e.t.Context(), statement); err == nil ||
		!strings.Contains(err.Error(), message) {
		e.t.Errorf("%s: error %v, want %q", statement, err, message)
	}
}

// empty drops all tables of the database but these.
func (e *engine) empty(but ...string) {
	e.t.Helper()
	for _, table := range e.column(
		"SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name DESC") {
		if !slices.Contains(but, table) { // views first: their names are longer
			e.exec("DROP TABLE IF EXISTS `" + table + "`")
		}
	}
}

// collectorTable returns the statements of the exporter for its table, with a TTL of ten years, its
// lookup table and view.
func collectorTable(table string) []string {
	text := comments.ReplaceAllString(read("testdata/exporter.sql"), "")
	return strings.Split(strings.ReplaceAll(text, "{table}", table), ";\n")
}

func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(text))
}

type span struct {
	trace    string
	id       uint64
	parent   string
	service  string
	name     string
	start    time.Time
	duration time.Duration
	status   string
	user     string
	host     string
}

// hex is a span's ID as text.
func hex(id uint64) string { return fmt.Sprintf("%016x", id) }

func (s span) values() string {
	service := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s.service)
	start := "'" + s.start.UTC().Format("2006-01-02 15:04:05.000000000") + "'"
	if s.start.Year() > 2261 { // as clickhouse-go sends it: its nanoseconds overflow
		start = fmt.Sprintf("fromUnixTimestamp64Nano(toInt64('%d'))", s.start.UnixNano())
	}
	return fmt.Sprintf("(%s,'%s','%s','%s','%s','%s','Server',"+
		"{'service.name':'%s','host.name':'%s'},{'user.id':'%s'},%d,'%s')",
		start, s.trace, hex(s.id), s.parent, service, s.name, service, s.host, s.user,
		s.duration.Nanoseconds(), s.status)
}

func (e *engine) insert(table string, spans []span) {
	e.t.Helper()
	for some := range slices.Chunk(spans, 5000) {
		e.exec(insertion(table, some))
	}
}

// insertion returns the statement that stores spans.
func insertion(table string, spans []span) string {
	var rows []string
	for _, s := range spans {
		rows = append(rows, s.values())
	}
	return "INSERT INTO " + table + " (Timestamp, TraceId, SpanId, ParentSpanId, ServiceName, " +
		"SpanName, SpanKind, ResourceAttributes, SpanAttributes, Duration, StatusCode) VALUES " +
		strings.Join(rows, ",")
}

// find runs a query of the package through database/sql and its parameters and
// returns one column as text.
func (e *engine) find(column string) func(clickhouse.Query, error) []string {
	return func(q clickhouse.Query, err error) (found []string) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
		row := e.db.QueryRowContext(e.t.Context(), "SELECT groupArray(toString("+column+
			")) FROM (\n"+q.SQL+"\n)", q.Args()...)
		if err := row.Scan(&found); err != nil {
			e.t.Fatalf("%s\n%v: %v", q.SQL, q.Params, err)
		}
		return found
	}
}

func parse(hex string) trace.TraceID {
	id, err := trace.TraceIDFromHex(hex)
	if err != nil {
		panic(err)
	}
	return id
}

// through returns the DSN of a proxy that rewrites each statement.
func (e *engine) through(rewrite func(string) string) string {
	e.t.Helper()
	at, err := url.Parse(e.DSN())
	if err != nil {
		e.t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: at.Scheme, Host: at.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, _ := io.ReadAll(r.Body)
		text := rewrite(string(statement))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		next.ServeHTTP(w, r)
	}))
	e.t.Cleanup(proxy.Close)
	at.Scheme, at.Host = "http", strings.TrimPrefix(proxy.URL, "http://")
	return at.String()
}

// rewriting returns database/sql, with settings as in a URL, whose statements are rewritten.
func (e *engine) rewriting(settings string, rewrite func(string) string) *sql.DB {
	e.t.Helper()
	return e.openAt(e.through(rewrite) + "?" + settings)
}

// reading matches the statements that read tables.
var reading = regexp.MustCompile(`^(WITH|SELECT (formatRow|name))`)

// oneServer turns statements for a cluster into statements for a single server without Keeper.
func oneServer(query string) string {
	if reading.MatchString(query) { // may have statements for the cluster as text
		return query
	}
	query = strings.Replace(query, "ENGINE = ReplicatedMergeTree", "ENGINE = MergeTree", 1)
	return onCluster.ReplaceAllString(query, "")
}
