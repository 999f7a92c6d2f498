package clickhouse_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

var (
	descendingQueries = flag.Int("descending", 6000, "random queries of TestDescendingKeys")
	descendingSeed    = flag.Uint64("descending-seed", 1, "their seed")
)

// A shape is a sorting key of random tables, and the primary key if that is shorter. The columns
// are a number, a time, its bucket of five minutes, a text and a small number.
type shape struct{ key, primary string }

var shapes = []shape{
	{"(toStartOfFiveMinutes(t) DESC, s, t)", "(toStartOfFiveMinutes(t), s)"}, // the table's
	{"(toStartOfFiveMinutes(t) DESC, s, t)", ""},
	{"(b DESC, s, t)", "(b, s)"},
	{"t DESC", ""},
	{"(s, t DESC)", ""},
	{"(b DESC, t DESC, s)", ""},
}

// TestDescendingKeys compares random queries of tables that are sorted in descending order with the
// same queries of tables without an index. Before ClickHouse 26.6 it must find wrong answers. The
// seed is fixed, since 26.3 refuses some queries ("Number of arguments for function "and"").
func TestDescendingKeys(t *testing.T) {
	const batch = 100
	e := child.ForTest(t, servers.ClickHouse)
	version := e.Rows(t,
		"SELECT version(), toFloat64(extract(version(), '^[^.]*.[^.]*')) < 26.6")[0]
	t.Logf("ClickHouse %s", version[0])
	r := rand.New(rand.NewPCG(*descendingSeed, 0))
	wrong := make(map[shape][]string)
	for i := range *descendingQueries / batch {
		s := shapes[i%len(shapes)]
		createDescending(t, e, s, r)
		wrong[s] = append(wrong[s], differences(t, e, batch, r)...)
	}
	for _, s := range shapes {
		t.Logf("ORDER BY %s PRIMARY KEY %s: %d wrong answers", s.key, s.primary, len(wrong[s]))
		if faulty := version[1] == "1"; !faulty && len(wrong[s]) > 0 {
			t.Error(strings.Join(wrong[s][:min(5, len(wrong[s]))], "\n"))
		} else if faulty && s == shapes[0] && len(wrong[s]) == 0 {
			t.Error("the fault of this version was not found")
		}
	}
}

// createDescending creates a table and its twin without an index, with the same random rows in
// several parts.
func createDescending(t *testing.T, e *servers.Engine, s shape, r *rand.Rand) {
	t.Helper()
	const columns = "(id UInt64, t DateTime64(9) CODEC(Delta, ZSTD), b UInt32, s String, n UInt8"
	primary, projection := "", ""
	if s.primary != "" {
		primary = " PRIMARY KEY " + s.primary
	}
	if r.IntN(2) == 0 {
		projection = ", PROJECTION p (SELECT id, t, n ORDER BY n, t)"
	}
	texts, parts := 1+r.IntN(30), 1+r.IntN(3)
	step := pick(r, 1, 30, 300) // seconds between different times
	statements := []string{
		"DROP TABLE IF EXISTS keyed", "DROP TABLE IF EXISTS plain",
		fmt.Sprintf(`CREATE TABLE keyed %s, INDEX m t TYPE minmax, INDEX f s TYPE bloom_filter%s)
			ENGINE = MergeTree%s ORDER BY %s SETTINGS index_granularity = %d,
			min_bytes_for_wide_part = %d, allow_experimental_reverse_key = 1`,
			columns, projection, primary, s.key, 1<<r.IntN(7), pick(r, 0, 10485760)),
		"CREATE TABLE plain " + columns + ") ENGINE = Memory",
		fmt.Sprintf(`INSERT INTO plain SELECT number AS id,
			toDateTime64('2026-11-28 00:00:00', 9) + intDiv(h, 7) %% %d * %d AS t,
			intDiv(toUnixTimestamp(t), 300) AS b, toString(intDiv(h, 100000) %% %d), h %% 5
			FROM (SELECT number, cityHash64(number, %d) AS h FROM numbers(%d))`,
			1+(1+r.IntN(40))*60/step, step, texts, r.Uint32(), 1<<(2+r.IntN(9))),
	}
	for part := range parts {
		statements = append(statements, fmt.Sprintf(
			"INSERT INTO keyed SELECT * FROM plain WHERE id %% %d = %d", parts, part))
	}
	if r.IntN(2) == 0 {
		statements = append(statements, "OPTIMIZE TABLE keyed FINAL")
	}
	e.Run(t, statements, nil)
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// differences returns those of n random queries whose answers differ: the sums of the IDs of all
// rows, or of the newest.
func differences(t *testing.T, e *servers.Engine, n int, r *rand.Rand) (all []string) {
	t.Helper()
	rows := e.Rows(t, "SELECT t, s FROM plain LIMIT 100")
	keyed, plain := make([]string, n), make([]string, n)
	for i := range n {
		where := condition(r, rows)
		if r.IntN(3) > 0 {
			keyed[i] = "SELECT sum(id) FROM keyed WHERE " + where
			plain[i] = "sumIf(id, " + where + ")"
			continue
		}
		newest := 1 + r.IntN(20)
		keyed[i] = fmt.Sprintf("SELECT sum(id) FROM (SELECT id FROM keyed WHERE %s "+
			"ORDER BY t DESC, id DESC LIMIT %d)", where, newest)
		plain[i] = fmt.Sprintf("arraySum(x -> x.2, arraySlice(arrayReverseSort("+
			"groupArrayIf((t, id), %s)), 1, %d))", where, newest)
	}
	const settings = " SETTINGS max_threads = 1"
	got := e.Rows(t, "SELECT ("+strings.Join(keyed, "), (")+")"+settings)[0]
	want := e.Rows(t, "SELECT "+strings.Join(plain, ", ")+" FROM plain"+settings)[0]
	for i, q := range keyed {
		if got[i] != want[i] {
			all = append(all, fmt.Sprintf("%s: %s, without an index %s", q, got[i], want[i]))
		}
	}
	return all
}

// condition returns up to four random conditions, mostly on values that are in the table.
func condition(r *rand.Rand, rows [][]string) (all string) {
	for i := range 1 + r.IntN(4) {
		one := pick(r, "t < > 'T'", "t BETWEEN 'T' AND 'T' + INTERVAL 100 SECOND",
			"toStartOfFiveMinutes(t) < > toStartOfFiveMinutes('T')",
			"b < > intDiv(toUnixTimestamp('T'), 300)", "s < > 'S'", "s IN ('S', 'S', 'S')",
			"startsWith(s, 'S')", "t IN ('T', 'T', 'T')", "n < > 2")
		one = strings.Replace(one, "< >", pick(r, "=", "<", "<=", ">", ">="), 1)
		for strings.Contains(one, "'S'") {
			one = strings.Replace(one, "'S'", "'"+pick(r, rows...)[1]+"' ", 1)
		}
		for strings.Contains(one, "'T'") {
			at := fmt.Sprintf("2026-11-28 00:%02d:%02d", r.IntN(45), r.IntN(60))
			if r.IntN(3) > 0 {
				at = pick(r, rows...)[0]
			}
			one = strings.Replace(one, "'T'", "toDateTime64('"+at+"', 9)", 1)
		}
		if i == 0 {
			all = one
			continue
		}
		all = "(" + all + pick(r, " AND ", " AND ", " AND ", " OR ") + pick(r, "", "", "", "NOT ") +
			one + ")"
	}
	return all
}
