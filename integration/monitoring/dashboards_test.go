package monitoring_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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

		FieldConfig struct {
			Overrides []struct {
				Properties []struct{ Value json.RawMessage }
			}
		}
	}
}

// dashboards returns those of deploy.
func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(child.Repository, "deploy/grafana/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	for _, file := range files {
		var d dashboard
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil || d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
			t.Errorf("%s has no uid, title or panels: %v", file, err)
		}
		for _, p := range d.Panels {
			if len(p.Targets) == 0 {
				t.Errorf("%s: %s has no query", file, p.Title)
			}
		}
		all = append(all, d)
	}
	return all
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

// spans inserts a day of traces, half of them with random IDs, and some with errors.
const spans = `INSERT INTO telemetry.spans
	(Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration,
	StatusCode, StatusMessage, SpanAttributes)
SELECT begin + INTERVAL number % 2 second,
	if(trace % 2 = 0, lower(hex(MD5(toString(trace)))), traceIDAt(begin, 0, trace)),
	leftPad(hex(number), 16, '0'), if(number % 2 = 0, '', leftPad(hex(number - 1), 16, '0')),
	'GET /' || toString(trace % 5), 'Server', if(number % 2 = 0, 'shop', 'orders'),
	1000000 * (number + 1), if(number % 99 = 0, 'Error', 'Ok'), if(number % 99 = 0, 'no', ''),
	map('url.path', '/' || toString(cityHash64(number)))
FROM (SELECT number, intDiv(number, 2) AS trace,
	toDateTime64(1791900000, 9, 'UTC') + INTERVAL trace second AS begin FROM numbers(172800))`

// newestErrors has the newest trace with an error, by span, in the time of macros.
const newestErrors = `SELECT TraceId FROM telemetry.spans
	WHERE StatusCode = 'Error' AND Timestamp <= toDateTime64(1791975600, 9)
	ORDER BY Timestamp DESC LIMIT 1 BY ServiceName, SpanName`

// Every query of the dashboards runs on the table of clickhouse.Schema, whatever its name, and
// returns rows. With random IDs, too, the newest trace is the newest, and a trace is found by
// reading no more than the query of the package reads.
func TestDashboards(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	e.Run(t, []string{"DROP DATABASE IF EXISTS telemetry SYNC", "CREATE DATABASE telemetry"}, nil)
	t.Cleanup(func() {
		if _, err := e.Query(context.Background(), "DROP DATABASE telemetry SYNC"); err != nil {
			t.Error(err)
		}
	})
	schema := clickhouse.Schema{Database: "telemetry", Table: "spans"}
	statements, err := schema.Statements()
	e.Run(t, append(statements, spans, "OPTIMIZE TABLE telemetry.spans FINAL"), err)
	trace := e.Rows(t, "SELECT TraceId FROM telemetry.spans WHERE Timestamp = "+
		"toDateTime64(1791973000, 9) ORDER BY SpanId LIMIT 1")[0][0]
	ours, err := schema.Trace([16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	most, err := e.Reads(t.Context(), "SELECT * FROM ("+
		strings.Replace(ours.SQL, "{ids:Array(String)}", "['"+trace+"']", 2)+")")
	if err != nil || len(most.Rows) != 2 {
		t.Fatalf("%d spans of %s: %v", len(most.Rows), trace, err)
	}

	traces, newest := 0, 0
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if target.Expr != "" {
					continue // see TestOutage
				}
				sql := strings.ReplaceAll(macros.Replace(target.RawSQL), "$trace", trace)
				if strings.Contains(sql, "$") {
					t.Errorf("%s: an unknown macro is left in\n%s", p.Title, sql)
					continue
				}
				r, err := e.Reads(t.Context(), sql)
				if err != nil || len(r.Rows) == 0 {
					t.Errorf("%s finds nothing: %v\n%s", p.Title, err, sql)
				}
				if strings.Contains(sql, trace) {
					traces++
					if len(r.Rows) != len(most.Rows) || r.Read.Disk > most.Read.Disk {
						t.Errorf("%s: %d spans, for which it reads %d bytes, want %d and %d",
							p.Title, len(r.Rows), r.Read.Disk, len(most.Rows), most.Read.Disk)
					}
				}
				for _, link := range p.FieldConfig.Overrides {
					testLogs(t, e, link.Properties[0].Value, sql)
				}
				if strings.Contains(sql, " AS newest") {
					newest++
					wrong := e.Rows(t, "SELECT * FROM ("+sql+") WHERE newest NOT IN ("+
						newestErrors+")")
					if len(wrong) > 0 {
						t.Errorf("%s: %d of %d rows do not have the newest trace, the first %q",
							p.Title, len(wrong), len(r.Rows), wrong[0])
					}
				}
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" && strings.HasPrefix(v.Query, "SELECT") {
				e.Rows(t, macros.Replace(v.Query))
			}
		}
	}
	if traces != 1 || newest != 1 {
		t.Errorf("%d panels have a trace, %d the newest traces, want one each", traces, newest)
	}
}

// testLogs: the link from a trace to its logs finds them, from the time in the ID on, before which
// neither spans nor logs of the trace were written.
func testLogs(t *testing.T, e *servers.Engine, links json.RawMessage, panel string) {
	t.Helper()
	var all []struct{ URL string }
	_ = json.Unmarshal(links, &all) // of other properties, which are none
	i := slices.IndexFunc(all, func(link struct{ URL string }) bool {
		return strings.HasPrefix(link.URL, "/explore")
	})
	if i < 0 {
		return
	}
	var panes map[string]struct {
		Queries []struct{ RawSQL string }
		Range   struct{ From, To string }
	}
	_, text, _ := strings.Cut(all[i].URL, "&panes=")
	if err := json.Unmarshal([]byte(text), &panes); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	logs := panes["logs"]
	if logs.Range.From != "${__data.fields.begins}" || logs.Range.To != "now" {
		t.Errorf("the logs are those of %+v", logs.Range)
	}
	late := e.Rows(t, "SELECT TraceId FROM ("+panel+") WHERE begins > "+
		"toUnixTimestamp64Milli(Timestamp) OR "+
		"begins < toUnixTimestamp64Milli(Timestamp) - 86400000")
	if len(late) > 0 {
		t.Errorf("the logs of %d traces begin at a wrong time", len(late))
	}
	e.Run(t, []string{"CREATE TABLE telemetry.otel_logs (Timestamp DateTime64(9), " +
		"TraceId String, SeverityText String, ServiceName String, Body String) " +
		"ENGINE = MergeTree ORDER BY Timestamp",
		"INSERT INTO telemetry.otel_logs (Timestamp, TraceId, Body) SELECT Timestamp, TraceId, " +
			"'one' FROM telemetry.spans WHERE ParentSpanId = ''"}, nil)
	for _, row := range e.Rows(t, "SELECT TraceId, begins FROM ("+panel+") LIMIT 4") {
		sql := strings.NewReplacer("$__timeFilter(Timestamp)", "Timestamp >= "+
			"fromUnixTimestamp64Milli(toInt64("+row[1]+"))", "${database}", "telemetry",
			"${__value.text}", row[0]).Replace(logs.Queries[0].RawSQL)
		if got := e.Rows(t, sql); len(got) != 1 || strings.Contains(sql, "$") {
			t.Errorf("%d logs, want one: %s", len(got), sql)
		}
	}
}
