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
	slack := func(slack time.Duration) error { return second(clickhouse.Schema{Slack: slack}.Trace([16]byte{1})) }
	const years50 = 50 * 365 * 24 * time.Hour
	for _, c := range []struct {
		name string
		err  error
		good bool
	}{
		{"3000 traces", second(clickhouse.Traces(s, make([][16]byte, 3000))), true},
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
		{"no slack", slack(0), true},
		{"a slack of a year", slack(365 * 24 * time.Hour), true},
		{"a longer slack", slack(365*24*time.Hour + 1), false},
		{"a negative slack", slack(-1), false},
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
	q, err := clickhouse.Traces(clickhouse.Schema{}, [][16]byte{{15: 1}, {15: 2}, {15: 3}})
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

// The last range is the one that was asked for, and each is four times as long as
// the one before.
func TestWidening(t *testing.T) {
	for _, c := range []struct {
		from time.Duration
		want []time.Duration
	}{
		{0, nil},
		{-time.Second, nil},
		{time.Second, []time.Duration{time.Second}},
		{time.Minute, []time.Duration{time.Minute}},
		{5 * time.Minute, []time.Duration{time.Minute, 4 * time.Minute, 5 * time.Minute}},
	} {
		var got []time.Duration
		for start := range clickhouse.Widening(day.Add(-c.from), day) {
			got = append(got, day.Sub(start))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("of %v: %v, want %v", c.from, got, c.want)
		}
	}
	n := 0 // ranges of two centuries: no overflow
	for range clickhouse.Widening(time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d ranges", n)
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
