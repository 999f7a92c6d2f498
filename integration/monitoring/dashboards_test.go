package monitoring_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// dashboard has the parts that the tests use.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, RawSQL string }
	}
}

func dashboardOf(t *testing.T, name string) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(child.Read(t, "deploy/grafana/"+name)), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Errorf("%s has no uid, title or panels", name)
	}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
	}
	return d
}

// The replacements that Grafana's ClickHouse plugin makes for its macros and our variables.
var macros = strings.NewReplacer(
	"$__timeFilter(Timestamp)",
	"Timestamp >= toDateTime64(1791972000, 9) AND Timestamp <= toDateTime64(1791975600, 9)",
	"$__timeInterval(Timestamp)", "toStartOfInterval(toDateTime(Timestamp), INTERVAL 20 second)",
	"$__fromTime", "toDateTime(1791972000)",
	"$__toTime", "toDateTime(1791975600)",
	"$service", "'shop','orders'",
	"$database", "telemetry",
	"$table", "spans", "${table}", "spans",
)

// spans inserts the traces of an hour, one with an error and one with a foreign ID.
const spans = `INSERT INTO telemetry.spans
	(Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration,
	StatusCode, StatusMessage)
SELECT begin + INTERVAL number % 2 second AS Timestamp,
	if(number < 2, '4bf92f3577b34da6a3ce929d0e0e4736',
		traceIDAt(begin, 0, number - number % 2 + 1)),
	leftPad(hex(number), 16, '0'), if(number % 2 = 0, '', leftPad(hex(number - 1), 16, '0')),
	'GET /', 'Server', if(number % 2 = 0, 'shop', 'orders'), 1000000 * (number + 1),
	if(number = 3, 'Error', 'Ok'), if(number = 3, 'no stock', '')
FROM (SELECT number,
	toDateTime64(1791972600, 9, 'UTC') + INTERVAL number - number % 2 second AS begin
	FROM numbers(200))`

// Every query of the dashboard runs on the table of clickhouse.Schema, whatever its name, and
// returns rows.
func TestTracesDashboard(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	e.Run(t, []string{"DROP DATABASE IF EXISTS telemetry SYNC", "CREATE DATABASE telemetry"}, nil)
	t.Cleanup(func() {
		if _, err := e.Query(context.Background(), "DROP DATABASE telemetry SYNC"); err != nil {
			t.Error(err)
		}
	})
	statements, err := clickhouse.Schema{Database: "telemetry", Table: "spans"}.Statements()
	e.Run(t, append(statements, spans), err)
	trace := e.Rows(t,
		"SELECT max(TraceId) FROM telemetry.spans WHERE ServiceName = 'orders'")[0][0]
	d := dashboardOf(t, "traces.json")
	queries := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			sql := strings.ReplaceAll(macros.Replace(target.RawSQL), "$trace", trace)
			if strings.Contains(sql, "$") {
				t.Errorf("%s: an unknown macro is left in\n%s", p.Title, sql)
				continue
			}
			if rows := e.Rows(t, sql); len(rows) == 0 {
				t.Errorf("%s finds nothing:\n%s", p.Title, sql)
			} else {
				t.Logf("%s: %d rows, the first %q", p.Title, len(rows), rows[0])
			}
			queries++
		}
	}
	if queries < len(d.Panels) {
		t.Errorf("%d queries in %d panels", queries, len(d.Panels))
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			e.Rows(t, macros.Replace(v.Query))
		}
	}
}
