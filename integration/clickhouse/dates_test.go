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

// TestOddDates stores spans of clocks that are wrong by days or by centuries, in several inserts, as the exporter's
// table and ours have them: no more parts, and the same answers.
func TestOddDates(t *testing.T) {
	e := newEngine(t)
	e.exec(strings.ReplaceAll(read(bench+"collector.sql"), "{table}", "exporter")) // without a TTL, which would drop most of it
	schemas := []clickhouse.Schema{{Table: "exporter", Layout: clickhouse.Overlay}, {Table: "service"}, {Table: "trace", Layout: clickhouse.TraceFirst}}
	e.creates(schemas[1])
	e.creates(schemas[2])
	dates := []time.Time{noon, noon.Add(-72 * time.Hour), noon.Add(72 * time.Hour), noon.Add(-6 * time.Hour)}
	for _, year := range []int{1931, 1969, 1970, 2106, 2107, 2150, 2261, 2299} {
		dates = append(dates, time.Date(year, 2, 3, 4, 5, 6, 0, time.UTC), time.Date(year, 12, 31, 22, 59, 59, 0, time.UTC))
	}
	var ids [][16]byte
	for block := range 2 {
		var spans []span
		for i, date := range dates {
			for k := range 20 {
				id := traceid.Min(noon.Add(time.Duration(1000*i+k) * time.Second))
				if block == 0 && k == 0 {
					ids = append(ids, id)
				}
				spans = append(spans, span{trace: id.String(), id: uint64(1 + len(spans) + 10_000*block), service: fmt.Sprintf("service-%d", k%3), name: fmt.Sprint("GET /", k%2),
					start: date.Add(time.Duration(k)*time.Minute + time.Duration(block)*time.Second), failed: k%5 == 0, user: fmt.Sprint("u", i)})
			}
		}
		for _, s := range schemas {
			e.insert(s.Table, spans)
		}
	}
	parts := func(table string) (n int) {
		_, err := fmt.Sscan(e.one("SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND table = '"+table+"'"), &n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, merged := range []bool{false, true} {
		if merged {
			for _, s := range schemas {
				e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
			}
		}
		exporters := parts("exporter")
		for _, s := range schemas[1:] {
			if n := parts(s.Table); merged && n > exporters {
				t.Errorf("%s has %d parts, the exporter's table %d", s.Table, n, exporters)
			}
		}
		answers := func(s clickhouse.Schema) map[string][]string {
			all := map[string][]string{
				"traces":   e.find("SpanId")(clickhouse.TracesEverywhere(s, ids)),
				"services": e.column("SELECT ServiceName || ' ' || toString(count()) FROM " + s.Table + " GROUP BY ServiceName"),
				"newest":   e.column("SELECT toString(Timestamp) FROM " + s.Table + " ORDER BY Timestamp DESC LIMIT 500"),
				"since":    e.column("SELECT SpanId FROM " + s.Table + " WHERE ServiceName = 'service-1' AND Timestamp > '2026-10-14 12:00:00'"),
				"until":    e.column("SELECT SpanId FROM " + s.Table + " WHERE ServiceName = 'service-1' AND SpanName = 'GET /1' AND Timestamp < '2026-10-14 12:00:00'"),
			}
			for i, date := range dates {
				if date.Year() > 2261 {
					continue // no DateTime64(9) has this time
				}
				from, to := date.Add(-time.Hour), date.Add(20*time.Minute)
				all[fmt.Sprint("a trace of ", date)] = e.find("SpanId")(clickhouse.TracesEverywhere(s, ids[i:i+1]))
				all[fmt.Sprint("spans of ", date)] = e.find("SpanId")(s.Spans(from, to))
				all[fmt.Sprint("a service's of ", date)] = e.find("TraceId")(s.Search(clickhouse.Search{From: from, To: to, Service: "service-1", Name: "GET /1", Limit: 10_000}))
				all[fmt.Sprint("a day like ", date)] = e.column("SELECT SpanId FROM " + s.Table + " WHERE ServiceName = 'service-2' AND toDate(Timestamp) = toDate('" + date.Format(time.DateOnly) + "')")
			}
			return all
		}
		want := answers(schemas[0])
		if len(want["traces"]) != 2*len(dates) {
			t.Errorf("%d spans of %d traces", len(want["traces"]), len(dates))
		}
		for _, s := range schemas[1:] {
			for question, got := range answers(s) {
				if !slices.Equal(sorted(got), sorted(want[question])) {
					t.Errorf("merged %v, %s: %s: %d rows, the exporter's table has %d, or others", merged, s.Table, question, len(got), len(want[question]))
				}
			}
		}
	}
}
