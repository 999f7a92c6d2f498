package clickhouse_test

import (
	"database/sql"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// Every limit is taken as it is documented, and not one more.
func TestBounds(t *testing.T) {
	var s clickhouse.Schema
	end := day.Add(time.Hour)
	newest := func(limit int) error { return second(s.Newest(day, end, [16]byte{}, limit)) }
	search := func(q clickhouse.Search) error {
		q.From, q.To = day, end
		return second(s.Search(q))
	}
	spans := func(from, to int) error {
		return second(s.Spans(time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(to, 12, 31, 0, 0, 0, 0, time.UTC)))
	}
	keep := func(ttl time.Duration) error {
		_, err := clickhouse.Schema{TTL: ttl}.TTLStatements(false)
		return err
	}
	const years50 = 50 * 365 * 24 * time.Hour
	for _, c := range []struct {
		name string
		err  error
		good bool
	}{
		{"3000 traces", second(s.Traces(make([][16]byte, 3000))), true},
		{"no newest", newest(0), false},
		{"one newest", newest(1), true},
		{"10000 newest", newest(10_000), true},
		{"10001 newest", newest(10_001), false},
		{"from 1899", spans(1899, 2000), false},
		{"from 1900", spans(1900, 2000), true},
		{"to 2261", spans(2000, 2261), true},
		{"to 2262", spans(2000, 2262), false},
		{"a search for fewer than none", search(clickhouse.Search{Limit: -1}), false},
		{"a search for one", search(clickhouse.Search{Limit: 1}), true},
		{"a search for 10000", search(clickhouse.Search{Limit: 10_000}), true},
		{"a search for 10001", search(clickhouse.Search{Limit: 10_001}), false},
		{"the shortest negative", search(clickhouse.Search{MinDuration: -1}), false},
		{"the longest negative", search(clickhouse.Search{MaxDuration: -1}), false},
		{"one duration", search(clickhouse.Search{MinDuration: time.Second, MaxDuration: time.Second}), true},
		{"no duration", search(clickhouse.Search{MinDuration: time.Second, MaxDuration: time.Second - 1}), false},
		{"a TTL of a second", keep(time.Second), true},
		{"a TTL of an odd number of seconds", keep(3 * time.Second), true},
		{"a TTL of half a second", keep(time.Second / 2), false},
		{"a negative TTL", keep(-time.Second), false},
		{"a TTL of 50 years", keep(years50), true},
		{"a longer TTL", keep(years50 + time.Second), false},
	} {
		if (c.err == nil) != c.good {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}

func TestSampleConditionOfNoRatio(t *testing.T) {
	for ratio, want := range map[float64]string{0: "0", -1: "0", 1: "1", 2: "1"} {
		if got := clickhouse.SampleCondition(ratio); got != want {
			t.Errorf("%g: %s", ratio, got)
		}
	}
	if got := clickhouse.SampleCondition(math.NaN()); got != "0" {
		t.Errorf("NaN: %s", got)
	}
}

func TestThreeTraces(t *testing.T) {
	q, err := clickhouse.Schema{}.Traces([][16]byte{{15: 1}, {15: 2}, {15: 3}})
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0", 31)
	if want := "['" + zeros + "1','" + zeros + "2','" + zeros + "3']"; q.Params[0].Value != want {
		t.Errorf("%s, want %s", q.Params[0].Value, want)
	}
	if want := []any{sql.Named("ids", q.Params[0].Value)}; !slices.Equal(q.Args(), want) {
		t.Errorf("arguments %v", q.Args())
	}
}

// IDs have whole milliseconds: both ends are rounded up.
func TestNewestRoundsUp(t *testing.T) {
	for from, want := range map[time.Duration]string{
		0: "00.000000000", 1: "00.001000000", time.Millisecond: "00.001000000", time.Millisecond + 1: "00.002000000",
	} {
		q, err := clickhouse.Schema{}.Newest(day.Add(from), day.Add(time.Hour), [16]byte{}, 1)
		if err != nil || !strings.HasSuffix(q.Params[0].Value, want) {
			t.Errorf("from %s: %v, %v; want %s", from, q.Params, err, want)
		}
	}
}

func TestTTLOfTheLookupTable(t *testing.T) {
	s := clickhouse.Schema{Layout: clickhouse.Overlay, TTL: time.Hour}
	for lookup, want := range map[bool]int{false: 1, true: 2} {
		got, err := s.TTLStatements(lookup)
		if err != nil || len(got) != want || !strings.Contains(got[0], "Timestamp") || lookup && !strings.Contains(got[1], "Start") {
			t.Errorf("lookup table %v: %q, %v", lookup, got, err)
		}
	}
}
