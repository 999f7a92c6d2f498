package clickhouse_test

import (
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// Values up to each documented limit are accepted; beyond it, the error contains the limit.
func TestBounds(t *testing.T) {
	var s clickhouse.Schema
	end := day.Add(time.Hour)
	traces := func(n int) error { return second(clickhouse.Traces(s, make([][16]byte, n))) }
	newest := func(limit int) error { return second(s.Newest(day, end, clickhouse.Place{}, limit)) }
	spans := func(from, to int) error {
		return second(
			s.Newest(time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC),
				time.Date(to, 12, 31, 0, 0, 0, 0, time.UTC), clickhouse.Place{}, 1))
	}
	keep := func(ttl time.Duration) error {
		_, err := clickhouse.Schema{TTL: ttl}.Statements()
		return err
	}
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name string
		err  error
		want string // "" if it is taken
	}{
		{"no traces", traces(0), "no trace ID"},
		{"3000 traces", traces(3000), ""},
		{"3001 traces", traces(3001), "3001 trace IDs"},
		{"no newest", newest(0), "limit 0"},
		{"one newest", newest(1), ""},
		{"10000 newest", newest(10_000), ""},
		{"10001 newest", newest(10_001), "limit 10001"},
		{"an empty range", second(s.Newest(day, day, clickhouse.Place{}, 1)),
			"the end must be after"},
		{"from 1899", spans(1899, 2000), "times range from 1900 to"},
		{"from 1900", spans(1900, 2000), ""},
		{"to 2261", spans(2000, 2261), ""},
		{"to 2262", spans(2000, 2262), "times range from 1900 to"},
		{"a TTL of a second", keep(time.Second), ""},
		{"a TTL of an odd number of seconds", keep(3 * time.Second), ""},
		{"a TTL of half a second", keep(time.Second / 2), "TTL 500ms"},
		{"a TTL of 50 years", keep(50 * year), ""},
		{"a longer TTL", keep(50*year + time.Second), "TTL 438000h0m1s"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil &&
			(!strings.HasPrefix(c.err.Error(), "clickhouse: ") ||
				!strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
}
