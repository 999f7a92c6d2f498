package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// TestOddDates stores spans of clocks that are wrong by days or by centuries, in two inserts, as the exporter's
// table and ours have them: no more parts, and the same answers.
func TestOddDates(t *testing.T) {
	e := newEngine(t)
	e.exec(strings.ReplaceAll(read(bench+"collector.sql"), "{table}", "exporter")) // without a TTL, which would drop most of it
	dates := []time.Time{noon, noon.Add(-72 * time.Hour), noon.Add(72 * time.Hour), noon.Add(-6 * time.Hour)}
	for _, year := range []int{1931, 1969, 1970, 2106, 2107, 2150, 2261, 2299} {
		dates = append(dates, time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC), time.Date(year, 12, 31, 22, 59, 59, 0, time.UTC))
	}
	var spans []span
	for _, date := range dates {
		for k := range 40 {
			spans = append(spans, span{trace: traceid.Min(noon.Add(time.Duration(k) * time.Second)).String(), id: uint64(1 + len(spans)), service: fmt.Sprintf("service-%d", k%3),
				name: fmt.Sprint("GET /", k%2), start: date.Add(time.Duration(k)*time.Minute + time.Duration(k))})
		}
	}
	var parts int
	var exporters []string // answers
	for _, s := range []clickhouse.Schema{{Table: "exporter", Layout: clickhouse.Overlay}, {Table: "service"}, {Table: "trace", Layout: clickhouse.TraceFirst}} {
		e.creates(s)
		e.insert(s.Table, spans[:len(spans)/2])
		e.insert(s.Table, spans[len(spans)/2:])
		e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
		var answers []string
		add := func(question string, rows []string) {
			if answers = append(answers, fmt.Sprint(question, sorted(rows))); len(rows) == 0 && !strings.HasPrefix(question, "a day") { // no Date is before 1970
				t.Errorf("%s %s: nothing", s.Table, question)
			}
		}
		add("until", e.column("SELECT SpanId FROM "+s.Table+" WHERE ServiceName = 'service-1' AND SpanName = 'GET /1' AND Timestamp < '2026-10-14 12:00:00'"))
		for _, date := range dates {
			if date.Year() > 2261 {
				continue // no DateTime64(9) has this time
			}
			from, to := date.Add(-time.Hour), date.Add(20*time.Minute)
			add("spans of "+date.String(), e.find("SpanId")(s.Spans(from, to)))
			add("spans of "+date.String(), e.find("TraceId")(s.Search(clickhouse.Search{From: from, To: to, Service: "service-1", Name: "GET /1", Limit: 10_000})))
			add("a day like "+date.String(), e.column("SELECT SpanId FROM "+s.Table+" WHERE ServiceName = 'service-2' AND toDate(Timestamp) = toDate('"+date.Format(time.DateOnly)+"')"))
		}
		n := len(e.column("SELECT name FROM system.parts WHERE active AND database = currentDatabase() AND table = '" + s.Table + "'"))
		if exporters == nil {
			parts, exporters = n, answers
		}
		if n > parts {
			t.Errorf("%s has %d parts, the exporter's table %d", s.Table, n, parts)
		}
		for i, want := range exporters {
			if answers[i] != want {
				t.Errorf("%s: %s\nthe exporter's table has %s", s.Table, answers[i], want)
			}
		}
	}
}
