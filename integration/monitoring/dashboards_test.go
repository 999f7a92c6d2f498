package monitoring_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// dashboard has the parts that the tests use.
type dashboard struct {
	Templating struct {
		List []struct{ Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, RawSQL string }
	}
}

// parsed returns a dashboard of deploy, and its text.
func parsed(t *testing.T, name string) (d dashboard, text string) {
	t.Helper()
	text = child.Read(t, "deploy/grafana/"+name+".json")
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Panels) == 0 {
		t.Fatal("no panels in", name, err)
	}
	return d, text
}

// spans inserts a day of traces, half of them with random IDs, and some with errors, and a log for
// each.
var spans = []string{`INSERT INTO spans
	(Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration,
	StatusCode, StatusMessage, SpanAttributes)
SELECT begin + INTERVAL number % 2 second,
	if(trace % 2 = 0, lower(hex(MD5(toString(trace)))), traceIDAt(begin, 0, trace)),
	leftPad(hex(number), 16, '0'), if(number % 2 = 0, '', leftPad(hex(number - 1), 16, '0')),
	'GET /' || toString(trace % 5), 'Server', if(number % 2 = 0, 'shop', 'orders'),
	1000000 * (number + 1), if(number % 99 = 0, 'Error', 'Ok'), if(number % 99 = 0, 'no', ''),
	map('url.path', '/' || toString(cityHash64(number)))
FROM (SELECT number, intDiv(number, 2) AS trace,
	toDateTime64(1791900000, 9, 'UTC') + INTERVAL trace second AS begin FROM numbers(172800))`,
	`OPTIMIZE TABLE spans FINAL`,
	`CREATE TABLE otel_logs (Timestamp DateTime64(9), TraceId String, SeverityText String,
	ServiceName String, Body String) ENGINE = MergeTree ORDER BY Timestamp`,
	`INSERT INTO otel_logs (Timestamp, TraceId) SELECT Timestamp, TraceId FROM spans
	WHERE ParentSpanId = ''`}

const (
	// wrongNewest are the rows of a panel that lack the newest trace with an error of their span.
	wrongNewest = `SELECT * FROM (PANEL) WHERE newest NOT IN (
	SELECT TraceId FROM spans
	WHERE StatusCode = 'Error' AND Timestamp <= toDateTime64(1791975600, 9)
	ORDER BY Timestamp DESC LIMIT 1 BY ServiceName, SpanName)`
	// wrongBegins are those whose logs do not begin in the day before the root span.
	wrongBegins = `SELECT * FROM (PANEL) WHERE begins > toUnixTimestamp64Milli(Timestamp)
	OR begins < toUnixTimestamp64Milli(Timestamp) - 86400000`
)

// Every query of the dashboards runs on the table of clickhouse.Schema, whatever its name, and
// returns rows. With random IDs, too, the newest trace is the newest; a trace is found by reading
// no more than the query of the package reads, and its logs from the time in the ID on.
func TestDashboards(t *testing.T) {
	e := child.ForTest(t, servers.ClickHouse)
	schema := clickhouse.Schema{Table: "spans"}
	statements, err := schema.Statements()
	e.Run(t, append(statements, spans...), err)
	row := e.Rows(t, "SELECT currentDatabase(), TraceId FROM spans WHERE Timestamp = "+
		"toDateTime64(1791973000, 9) ORDER BY SpanId LIMIT 1")[0]
	database, trace := row[0], row[1]
	ours, err := schema.Trace([16]byte{})
	if err != nil {
		t.Fatal(err)
	}
	most, err := e.Reads(t.Context(),
		"SELECT * FROM ("+strings.Replace(ours.SQL, "{ids:Array(String)}", "['"+trace+"']", 2)+")")
	if err != nil || len(most.Rows) != 2 {
		t.Fatalf("%d spans of %s: %v", len(most.Rows), trace, err)
	}
	d, text := parsed(t, "traces")
	logs := regexp.MustCompile(`rawSql\\":\\"([^"\\]+)\\"}\],\\"range\\":{\\"from\\":` +
		`\\"\$\{__data.fields.begins\}\\",\\"to\\":\\"now\\"}`).FindStringSubmatch(text)
	if logs == nil {
		t.Fatal("no link to the logs from the begin on")
	}
	// The replacements that Grafana's ClickHouse plugin makes for its macros and our variables.
	const from, to = "toDateTime64(1791972000, 9)", "toDateTime64(1791975600, 9)"
	grafana := strings.NewReplacer(
		"$__timeFilter(Timestamp)", "Timestamp >= "+from+" AND Timestamp <= "+to,
		"$__timeInterval(Timestamp)",
		"toStartOfInterval(toDateTime(Timestamp), INTERVAL 20 second)",
		"$__fromTime", "toDateTime("+from+")", "$__toTime", "toDateTime("+to+")",
		"$service", "'shop','orders'", "$database", database, "${database}", database,
		"$table", "spans", "${table}", "spans", "$trace", trace, "${__value.text}", trace)

	checked := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			sql := grafana.Replace(target.RawSQL)
			r, err := e.Reads(t.Context(), sql)
			if err != nil || len(r.Rows) == 0 || strings.Contains(sql, "$") {
				t.Errorf("%s finds nothing: %v\n%s", p.Title, err, sql)
			}
			for part, wrong := range map[string]string{" AS newest": wrongNewest,
				" AS begins": wrongBegins} {
				if strings.Contains(sql, part) {
					checked[part] = true
					rows := e.Rows(t, strings.Replace(wrong, "PANEL", sql, 1))
					if len(rows) > 0 {
						t.Errorf("%s: %d rows have a wrong%s, the first %q", p.Title, len(rows),
							part, rows[0])
					}
				}
			}
			if strings.Contains(sql, trace) {
				checked["trace"] = true
				if len(r.Rows) != len(most.Rows) || r.Read.Disk > most.Read.Disk {
					t.Errorf("%s: %d spans, for which it reads %d bytes, want %d and %d", p.Title,
						len(r.Rows), r.Read.Disk, len(most.Rows), most.Read.Disk)
				}
			}
		}
	}
	if len(checked) != 3 {
		t.Errorf("checked only %v", checked)
	}
	if found := e.Rows(t, grafana.Replace(logs[1])); len(found) != 1 {
		t.Errorf("%d logs, want one", len(found))
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			e.Rows(t, grafana.Replace(v.Query))
		}
	}
}
