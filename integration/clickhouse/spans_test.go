package clickhouse_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// collectorTable is the table of the Collector's exporter v0.161.0, with its
// lookup table and view.
func collectorTable(table string) []string {
	create := strings.Replace(read(bench+"collector.sql"), "\nSETTINGS", "\nTTL toDateTime(Timestamp) + toIntervalDay(3650)\nSETTINGS", 1)
	return strings.Split(strings.ReplaceAll(create+";\n"+read(bench+"lookup.sql"), "{table}", table), ";\n")
}

// bench is the folder of the benchmark, which has the same tables, spans and queries.
const bench = "../../bench/clickhouse/sql/"

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
	return fmt.Sprintf("(%s,'%s','%s','%s','%s','%s','Server',{'service.name':'%s','host.name':'%s'},{'user.id':'%s'},%d,'%s')",
		start, s.trace, hex(s.id), s.parent, service, s.name, service, s.host, s.user, s.duration.Nanoseconds(), s.status)
}

func (e *engine) insert(table string, spans []span) {
	e.t.Helper()
	for len(spans) > 0 {
		n := min(len(spans), 5000)
		rows := make([]string, n)
		for i, s := range spans[:n] {
			rows[i] = s.values()
		}
		e.exec("INSERT INTO " + table + " (Timestamp, TraceId, SpanId, ParentSpanId, ServiceName, SpanName, SpanKind, ResourceAttributes, SpanAttributes, Duration, StatusCode) VALUES " +
			strings.Join(rows, ","))
		spans = spans[n:]
	}
}

// find runs a query of the package through database/sql and its parameters and
// returns one column as text.
func (e *engine) find(column string) func(clickhouse.Query, error) []string {
	return func(q clickhouse.Query, err error) (found []string) {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
		row := e.db.QueryRowContext(e.t.Context(), "SELECT groupArray(toString("+column+")) FROM (\n"+q.SQL+"\n)", q.Args()...)
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
