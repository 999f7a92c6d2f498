package clickhouse_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// collectorTable is the table of the Collector's exporter v0.161.0, with its
// lookup table and view.
func collectorTable(table string) []string {
	return []string{
		"CREATE TABLE " + table + ` (
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    Links Nested (TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String)) CODEC(ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_res_attr_value mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 1
) ENGINE = MergeTree()
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
TTL toDateTime(Timestamp) + toIntervalDay(3650)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1`,
		"CREATE TABLE " + table + `_trace_id_ts (
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = MergeTree() PARTITION BY toDate(Start) ORDER BY (TraceId, Start)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1`,
		"CREATE MATERIALIZED VIEW " + table + "_trace_id_ts_mv TO " + table + "_trace_id_ts AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM " +
			table + " WHERE TraceId != '' GROUP BY TraceId",
	}
}

type span struct {
	trace    string
	id       uint64
	parent   uint64
	service  string
	name     string
	start    time.Time
	duration time.Duration
	failed   bool
	user     string
	host     string
}

func (s span) status() string {
	if s.failed {
		return "Error"
	}
	return "Unset"
}

func (s span) values() string {
	hex := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%016x", n)
	}
	service := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s.service)
	return fmt.Sprintf("('%s','%s','%s','%s','%s','%s','Server',{'service.name':'%s','host.name':'%s'},{'user.id':'%s'},%d,'%s')",
		s.start.UTC().Format("2006-01-02 15:04:05.000000000"), s.trace, hex(s.id), hex(s.parent), service, s.name, service, s.host, s.user, s.duration.Nanoseconds(), s.status())
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
	return func(q clickhouse.Query, err error) []string {
		e.t.Helper()
		if err != nil {
			e.t.Fatal(err)
		}
		settings := ""
		sql := q.SQL
		if at := strings.LastIndex(sql, "\nSETTINGS "); at >= 0 {
			sql, settings = sql[:at], sql[at:]
		}
		rows, err := e.db.QueryContext(e.t.Context(), "SELECT toString("+column+") FROM (\n"+sql+"\n)"+settings, q.Args()...)
		if err != nil {
			e.t.Fatalf("%s\n%v: %v", q.SQL, q.Params, err)
		}
		defer func() { _ = rows.Close() }()
		var found []string
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				e.t.Fatal(err)
			}
			found = append(found, value)
		}
		if err := rows.Err(); err != nil {
			e.t.Fatalf("%s: %v", q.SQL, err)
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

// whole finds the spans of traces as a client does: it looks again for those
// that may not be whole.
func (e *engine) whole(s clickhouse.Schema, ids ...[16]byte) []string {
	e.t.Helper()
	const columns = "TraceId || ' ' || SpanId || ' ' || ParentSpanId || ' ' || toString(toUnixTimestamp64Nano(Timestamp)) || ' ' || toString(Duration)"
	read := func(q clickhouse.Query, err error) (spans []clickhouse.Span) {
		e.t.Helper()
		for _, row := range e.find(columns)(q, err) {
			fields := strings.Split(row, " ")
			start, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				e.t.Fatal(err)
			}
			duration, err := strconv.ParseInt(fields[4], 10, 64)
			if err != nil {
				e.t.Fatal(err)
			}
			spans = append(spans, clickhouse.Span{TraceID: parse(fields[0]), SpanID: fields[1], ParentSpanID: fields[2],
				Start: time.Unix(0, start), Duration: time.Duration(duration)})
		}
		return spans
	}
	spans := read(clickhouse.Traces(s, ids))
	if again := clickhouse.Incomplete(s, ids, spans); len(again) > 0 {
		spans = slices.DeleteFunc(spans, func(s clickhouse.Span) bool { return slices.Contains(again, s.TraceID) })
		spans = append(spans, read(clickhouse.TracesEverywhere(s, again))...)
	}
	var found []string
	for _, span := range spans {
		found = append(found, span.SpanID)
	}
	return found
}
