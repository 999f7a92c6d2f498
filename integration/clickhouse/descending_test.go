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
	descendingQueries = flag.Int("descending", 1000, "random queries of TestDescendingKeys")
	descendingSeed    = flag.Uint64("descending-seed", 1, "their seed")
)

// TestDescendingKeys compares random queries of tables with the table's key, newest first, with the
// same queries of tables without an index. Before ClickHouse 26.6 it must find wrong answers. The
// seed is fixed, since 26.3 refuses some queries ("Number of arguments for function "and"").
func TestDescendingKeys(t *testing.T) {
	const batch = 100
	e := child.ForTest(t, servers.ClickHouse)
	version := e.Rows(t,
		"SELECT version(), toFloat64(extract(version(), '^[^.]*.[^.]*')) < 26.6")[0]
	r := rand.New(rand.NewPCG(*descendingSeed, 0))
	var wrong []string
	for range *descendingQueries / batch {
		createDescending(t, e, r)
		wrong = append(wrong, differences(t, e, batch, r)...)
	}
	t.Logf("ClickHouse %s: %d wrong answers", version[0], len(wrong))
	if faulty := version[1] == "1"; faulty != (len(wrong) > 0) {
		t.Errorf("wrong answers are expected: %t, %d are\n%s", faulty, len(wrong),
			strings.Join(wrong[:min(5, len(wrong))], "\n"))
	}
}

// createDescending creates a table and its twin without an index, with the same random rows in
// several parts: a number, a time, a text and a small number.
func createDescending(t *testing.T, e *servers.Engine, r *rand.Rand) {
	t.Helper()
	const columns = "(id UInt64, t DateTime64(9) CODEC(Delta, ZSTD), s String, n UInt8"
	projection := ""
	if r.IntN(2) == 0 {
		projection = ", PROJECTION p (SELECT id, t, n ORDER BY n, t)"
	}
	texts, parts := 1+r.IntN(30), 1+r.IntN(3)
	step := pick(r, 1, 30, 300) // seconds between different times
	statements := []string{
		"DROP TABLE IF EXISTS keyed", "DROP TABLE IF EXISTS plain",
		fmt.Sprintf(`CREATE TABLE keyed %s, INDEX m t TYPE minmax, INDEX f s TYPE bloom_filter%s)
			ENGINE = MergeTree PRIMARY KEY (toStartOfFiveMinutes(t), s)
			ORDER BY (toStartOfFiveMinutes(t) DESC, s, t) SETTINGS index_granularity = %d,
			min_bytes_for_wide_part = %d, allow_experimental_reverse_key = 1`,
			columns, projection, 1<<r.IntN(7), pick(r, 0, 10485760)),
		"CREATE TABLE plain " + columns + ") ENGINE = Memory",
		fmt.Sprintf(`INSERT INTO plain SELECT number AS id,
			toDateTime64('2026-11-28 00:00:00', 9) + intDiv(h, 7) %% %d * %d AS t,
			toString(intDiv(h, 100000) %% %d), h %% 5
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
			"s < > 'S'", "s IN ('S', 'S', 'S')",
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
