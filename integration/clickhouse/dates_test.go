package clickhouse_test

import (
	"fmt"
	"slices"
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
	schemas := []clickhouse.Schema{{Table: "exporter", Layout: clickhouse.Overlay}, {Table: "service"}, {Table: "trace", Layout: clickhouse.TraceFirst}}
	dates := []time.Time{noon, noon.Add(-72 * time.Hour), noon.Add(72 * time.Hour), noon.Add(-6 * time.Hour)}
	for _, year := range []int{1931, 1969, 1970, 2106, 2107, 2150, 2261, 2299} {
		dates = append(dates, time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC), time.Date(year, 12, 31, 22, 59, 59, 0, time.UTC))
	}
	var ids [][16]byte // the first of each date
	var spans []span
	for i, date := range dates {
		ids = append(ids, traceid.Min(noon.Add(time.Duration(1000*i)*time.Second)))
		for k := range 40 {
			spans = append(spans, span{trace: traceid.Min(noon.Add(time.Duration(1000*i+k%20) * time.Second)).String(), id: uint64(1 + len(spans)), service: fmt.Sprintf("service-%d", k%3),
				name: fmt.Sprint("GET /", k%2), start: date.Add(time.Duration(k)*time.Minute + time.Duration(k)), failed: k%5 == 0})
		}
	}
	var parts []int
	var all []map[string][]string // the answers of each table
	for _, s := range schemas {
		e.creates(s)
		e.insert(s.Table, spans[:len(spans)/2])
		e.insert(s.Table, spans[len(spans)/2:])
		e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
		parts = append(parts, len(e.column("SELECT name FROM system.parts WHERE active AND database = currentDatabase() AND table = '"+s.Table+"'")))
		answers := map[string][]string{
			"traces":   e.find("SpanId")(clickhouse.TracesEverywhere(s, ids)),
			"services": e.column("SELECT ServiceName || ' ' || toString(count()) FROM " + s.Table + " GROUP BY ServiceName"),
			"newest":   e.column("SELECT toString(Timestamp) FROM " + s.Table + " ORDER BY Timestamp DESC LIMIT 500"),
			"until":    e.column("SELECT SpanId FROM " + s.Table + " WHERE ServiceName = 'service-1' AND SpanName = 'GET /1' AND Timestamp < '2026-10-14 12:00:00'"),
		}
		for _, date := range dates {
			if date.Year() > 2261 {
				continue // no DateTime64(9) has this time
			}
			from, to := date.Add(-time.Hour), date.Add(20*time.Minute)
			answers[fmt.Sprint("spans of ", date)] = e.find("SpanId")(s.Spans(from, to))
			answers[fmt.Sprint("a service's of ", date)] = e.find("TraceId")(s.Search(clickhouse.Search{From: from, To: to, Service: "service-1", Name: "GET /1", Limit: 10_000}))
			answers[fmt.Sprint("a day like ", date)] = e.column("SELECT SpanId FROM " + s.Table + " WHERE ServiceName = 'service-2' AND toDate(Timestamp) = toDate('" + date.Format(time.DateOnly) + "')")
		}
		all = append(all, answers)
	}
	if len(all[0]["traces"]) != 2*len(dates) {
		t.Errorf("%d spans of %d traces", len(all[0]["traces"]), len(dates))
	}
	for i, s := range schemas[1:] {
		if parts[i+1] > parts[0] {
			t.Errorf("%s has %d parts, the exporter's table %d", s.Table, parts[i+1], parts[0])
		}
		for question, want := range all[0] {
			if got := all[i+1][question]; !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("%s: %s: %d rows, the exporter's table has %d, or others", s.Table, question, len(got), len(want))
			}
		}
	}
}
