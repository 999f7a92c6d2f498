package clickhouse_test

import (
	"fmt"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

// TestEventDeltas compares the rows of HyperDX's event deltas in a part of more than a million
// rows, from which on ClickHouse uses a projection as an index, with those of the same query
// without its index hint: with the setting that docs/clickhouse.md names they are equal. Without it
// they are not; if that changes in a newer ClickHouse, change the page.
func TestEventDeltas(t *testing.T) {
	e := newEngine(t)
	e.run(clickhouse.Schema{Table: "spans", Version: e.one("SELECT version()")}.Statements())
	e.exec(`INSERT INTO spans (Timestamp, TraceId, SpanId, ServiceName, SpanName, SpanKind,
		Duration, StatusCode) SELECT toDateTime64('2026-10-14 08:00:00', 9, 'UTC') +
		toIntervalMillisecond(number * 6), lower(hex(sipHash128(intDiv(number, 10)))),
		lower(hex(sipHash64(number, 3))), concat('service-', toString(intHash32(number) % 25)),
		concat('GET /api/', toString(intHash32(number * 31) % 8)), 'Server',
		intHash32(number * 7) % 900000000, if(intHash32(number * 5) % 50 = 0, 'Error', 'Unset')
		FROM numbers(1200000)`)
	e.exec("OPTIMIZE TABLE spans FINAL")
	e.is("1", "SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND "+
		"table = 'spans'")
	const day = "Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00'"
	const off = "optimize_use_projection_filtering = 0"
	wrong := map[string]int{}
	for _, condition := range []string{"", " AND SpanName = 'GET /api/2'",
		" AND StatusCode = 'Error'", " AND Duration > 899000000"} {
		last := "FROM spans WHERE " + day + " AND ServiceName = 'service-3'" + condition
		const order = " ORDER BY cityHash64(SpanId) DESC LIMIT 1000"
		for _, columns := range []string{"*", "SpanId, Duration"} {
			rows := func(more, settings string) string {
				return fmt.Sprint(e.exec("WITH PartIds AS (SELECT tuple(_part, _part_offset) " +
					last + order + ") SELECT count(), sum(cityHash64(SpanId)) FROM (SELECT " +
					columns + " " + last + more + order + ") SETTINGS " + settings))
			}
			want := rows("", "optimize_use_projections = 0")
			for _, settings := range []string{off, "optimize_use_projection_filtering = 1"} {
				got := rows(" AND indexHint((_part, _part_offset) IN PartIds)", settings)
				if got == want {
					continue
				}
				if wrong[settings]++; settings == off {
					t.Errorf("%s %s with %s: %s, want %s", columns, condition, settings, got, want)
				}
			}
		}
	}
	version := e.one("SELECT version()")
	t.Logf("ClickHouse %s: wrong of 8: %v", version, wrong)
	if len(wrong) == 0 {
		t.Errorf("ClickHouse %s has no wrong rows without the setting: change the page", version)
	}
}
