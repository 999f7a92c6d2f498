package clickhouse_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

var (
	predicates = flag.Int("predicates", 150, "random predicates for TestIndexesChangeNoAnswer")
	fuzzSeed   = flag.Uint64("predicates-seed", 1,
		"seed of the first predicate of TestIndexesChangeNoAnswer")
)

// predicate is a random condition on spans, as tools and people write them.
type predicate struct {
	*rand.Rand
	spans []span
}

func (p predicate) any() span { return p.spans[p.IntN(len(p.spans))] }

// time returns a time near that of a span, and sometimes any other.
func (p predicate) time() string {
	at := p.any().start.Add(time.Duration(p.Int64N(int64(2*time.Hour))) - time.Hour)
	if p.IntN(8) == 0 {
		at = at.AddDate(p.IntN(40)-20, 0, 0)
	}
	return "toDateTime64('" + at.UTC().Format("2006-01-02 15:04:05.000") + "', 9, 'UTC')"
}

// atom returns a comparison, never with abs() of Timestamp: ClickHouse 26.7 then returns wrong
// results, see docs/clickhouse.md.
func (p predicate) atom() string {
	op := []string{"=", "!=", "<", "<=", ">", ">="}[p.IntN(6)]
	switch p.IntN(11) {
	case 0, 1:
		return "TraceId = '" + p.any().trace + "'"
	case 2:
		return fmt.Sprintf("TraceId IN ('%s', '%s', 'x')", p.any().trace, p.any().trace)
	case 3:
		return "TraceId " + op + " '" + p.any().trace[:4+p.IntN(28)] + "'"
	case 4, 5:
		return "Timestamp " + op + " " + p.time()
	case 6:
		return "Timestamp BETWEEN " + p.time() + " AND " + p.time()
	case 7:
		of := []string{"toStartOfHour(Timestamp)", "toDateTime(Timestamp)", "toDate(Timestamp)",
			"toStartOfFiveMinutes(Timestamp)"}[p.IntN(4)]
		return of + " " + op + " " + strings.Replace(of, "Timestamp", p.time(), 1)
	case 8:
		return fmt.Sprintf("toUnixTimestamp64Milli(Timestamp) - %d %s %d",
			p.any().start.UnixMilli(), op, p.IntN(7_200_000)-3_600_000)
	case 9:
		return fmt.Sprintf("Duration %s %d", op, p.any().duration)
	default:
		s := p.any()
		return []string{"ServiceName = 'service-1'", "SpanName = '" + s.name + "'",
			"SpanId = '" + hex(s.id) + "'",
			"SpanAttributes['user.id'] = '" + s.user + "'", "lower(TraceId) < '" + s.trace +
				"'"}[p.IntN(5)]
	}
}

// sql returns a condition of some comparisons.
func (p predicate) sql(depth int) string {
	if depth == 0 || p.IntN(4) == 0 {
		return p.atom()
	}
	text := p.sql(depth-1) + []string{" AND ", " OR "}[p.IntN(2)] + p.sql(depth-1)
	return []string{"", "", "NOT "}[p.IntN(3)] + "(" + text + ")"
}

// TestIndexesChangeNoAnswer: indexes, the sorting key and the partitions only make queries faster.
func TestIndexesChangeNoAnswer(t *testing.T) {
	e := newEngine(t)
	spans := world()[:6000]
	tables := []clickhouse.Schema{{Table: "ours"}, {Table: "newest", Version: "26.8"},
		{Table: "everything", Projection: clickhouse.AllColumns}}
	small := regexp.MustCompile("index_granularity = [0-9]+") // many granules of few spans
	for _, s := range tables {
		statements, err := s.Statements()
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			e.exec(small.ReplaceAllString(statement, "index_granularity = 16"))
		}
		e.insert(s.Table, spans)
	}
	e.exec("CREATE TABLE plain ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM ours")
	found := 0
	for i := range *predicates {
		seed := *fuzzSeed + uint64(i)
		where := predicate{rand.New(rand.NewPCG(seed, 35)), spans}.sql(3)
		const answer = "SELECT toString((count(), sum(cityHash64(SpanId)))) FROM "
		want := e.one(answer + "plain WHERE " + where)
		if want != "(0,0)" {
			found++
		}
		for _, s := range tables {
			for _, settings := range []string{"", " SETTINGS optimize_use_projections = 0"} {
				if got := e.one(answer + s.Table + " WHERE " + where + settings); got != want {
					t.Errorf("seed %d, %s%s: %s, want %s\n%s", seed, s.Table, settings, got, want,
						where)
				}
			}
		}
	}
	if found < *predicates/4 {
		t.Errorf("only %d of %d predicates find anything", found, *predicates)
	}
}
