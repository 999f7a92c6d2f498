package postgres_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// The statements in contrib/postgres/README.md find the right rows by an index, unchanged.
func TestDocumentedIndexes(t *testing.T) {
	db := functions(t)
	var examples []string
	for _, block := range child.Blocks(child.Read(t, "contrib/postgres/README.md"), "sql") {
		examples = append(examples, strings.TrimSuffix(block, ";\n"))
	}
	if len(examples) != 5 {
		t.Fatalf("the documentation has %d statements, want 5", len(examples))
	}
	table, byID, index, byTime, update := examples[0], examples[1], examples[2], examples[3],
		examples[4]
	db.exec(table)
	// A request every ten seconds of a day, with foreign IDs among them.
	db.exec(`INSERT INTO requests
		SELECT trace_id_at('2026-11-20 00:00Z'::timestamptz + n * interval '10 s'), n::text
		FROM generate_series(0, 8639) AS n`)
	db.exec("INSERT INTO requests SELECT md5(n::text), 'foreign' " +
		"FROM generate_series(1, 1000) AS n")
	db.exec("ANALYZE requests")

	paths := func(end int) (paths []string) { // from ten on
		for n := 3600; n < end; n++ {
			paths = append(paths, strconv.Itoa(n))
		}
		return paths
	}
	check := func(query, index string, want []string) {
		t.Helper()
		if plan := db.plan(query); !regexp.MustCompile(`(?s)Index.* ` + index +
			`.*Index Cond: `).MatchString(plan) {
			t.Errorf("%s\ndoes not use %s:\n%s", query, index, plan)
		}
		got := db.texts(strings.Replace(query, "SELECT *", "SELECT path", 1))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s\nreturns %d rows, want %d", query, len(got), len(want))
		}
	}
	check(byID, "requests_pkey", paths(3631))
	db.exec(index)
	db.exec("ANALYZE requests")
	check(byTime, "requests_time", paths(3630))

	// A bound that moves with the clock is also computed only once.
	plan := db.plan("SELECT * FROM requests " +
		"WHERE trace_id > trace_id_min(now() - interval '1 hour')")
	if !strings.Contains(plan, "Index Cond: ") {
		t.Errorf("a bound of now() scans:\n%s", plan)
	}

	db.exec("DROP TABLE requests")
	db.exec("CREATE TABLE requests (trace_id text, created_at timestamptz)")
	db.exec("INSERT INTO requests SELECT NULL, '2026-11-20 10:00:00.123456Z' FROM " +
		"generate_series(1, 1000)")
	db.exec("INSERT INTO requests VALUES (NULL, '2019-01-01'), ('kept', now())")
	db.exec(update)
	db.want("1000", "SELECT count(DISTINCT trace_id) FROM requests WHERE trace_id_time(trace_id) "+
		"= '2026-11-20 10:00:00.123Z'")
	db.want("2", "SELECT count(*) FROM requests WHERE trace_id = 'kept' OR trace_id IS NULL")
}
