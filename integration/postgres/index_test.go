package postgres_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// The statements in the package documentation find the right rows by an index, unchanged.
func TestDocumentedIndexes(t *testing.T) {
	db := functions(t)
	examples := documented(t)
	if len(examples) != 5 {
		t.Fatalf("the documentation has %d statements, want 5", len(examples))
	}
	table, byID, index, byTime, update := examples[0], examples[1], examples[2], examples[3], examples[4]
	db.exec(table)
	// A request every ten seconds of a day, with foreign IDs among them.
	db.exec(`INSERT INTO requests SELECT trace_id_at('2026-11-20 00:00Z'::timestamptz + n * interval '10 s'), n::text FROM generate_series(0, 8639) AS n`)
	db.exec(`INSERT INTO requests SELECT md5(n::text), 'foreign' FROM generate_series(1, 1000) AS n`)
	db.exec("ANALYZE requests")

	from, to := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Date(2026, 11, 20, 10, 5, 0, 0, time.UTC)
	want := func(inclusive int) (paths []string) {
		all := column[string](db, "SELECT trace_id || path FROM requests")
		for _, row := range all {
			id, err := trace.TraceIDFromHex(row[:32])
			if err != nil {
				t.Fatal(err)
			}
			if at := traceid.Time(id); !at.Before(from) && at.Before(to.Add(time.Duration(inclusive)*time.Millisecond)) {
				paths = append(paths, row[32:])
			}
		}
		slices.Sort(paths)
		return paths
	}
	check := func(query, index string, want []string) {
		t.Helper()
		if plan := db.plan(query); !regexp.MustCompile(`(?s)Index.* ` + index + `.*Index Cond: `).MatchString(plan) {
			t.Errorf("%s\ndoes not use %s:\n%s", query, index, plan)
		}
		got := column[string](db, strings.Replace(query, "SELECT *", "SELECT path", 1))
		slices.Sort(got)
		if len(want) < 30 || !slices.Equal(got, want) {
			t.Errorf("%s\nreturns %d rows, want %d", query, len(got), len(want))
		}
	}
	check(byID, "requests_pkey", want(1))
	db.exec(index)
	db.exec("ANALYZE requests")
	check(byTime, "requests_time", want(0))

	// The other types sort in the same order.
	for _, column := range []struct{ name, value, suffix string }{
		{"bytea", "decode(trace_id, 'hex')", "_bytea"}, {"uuid", "trace_id::uuid", "_uuid"},
	} {
		db.exec("CREATE TABLE as_" + column.name + " AS SELECT " + column.value + " AS trace_id, path FROM requests")
		db.exec("CREATE INDEX by_" + column.name + " ON as_" + column.name + " (trace_id)")
		db.exec("CREATE INDEX time_of_" + column.name + " ON as_" + column.name + " (trace_id_time(trace_id))")
		db.exec("ANALYZE as_" + column.name)
		s := strings.NewReplacer("requests", "as_"+column.name, "_min(", "_min"+column.suffix+"(", "_max(", "_max"+column.suffix+"(")
		check(s.Replace(byID), "by_"+column.name, want(1))
		check(s.Replace(byTime), "time_of_"+column.name, want(0))
	}

	// A bound that moves with the clock is also computed only once.
	plan := db.plan("SELECT * FROM requests WHERE trace_id > trace_id_min(now() - interval '1 hour')")
	if !strings.Contains(plan, "Index Cond: ") {
		t.Errorf("a bound of now() scans:\n%s", plan)
	}

	db.exec("DROP TABLE requests")
	db.exec("CREATE TABLE requests (trace_id text, created_at timestamptz)")
	db.exec("INSERT INTO requests SELECT NULL, '2026-11-20 10:00:00.123456Z' FROM generate_series(1, 1000)")
	db.exec("INSERT INTO requests VALUES (NULL, '2019-01-01'), ('kept', now())")
	db.exec(update)
	if n := one[int](db, "SELECT count(DISTINCT trace_id) FROM requests WHERE trace_id_time(trace_id) = '2026-11-20 10:00:00.123Z'"); n != 1000 {
		t.Errorf("%d IDs for 1000 old rows", n)
	}
	if n := one[int](db, "SELECT count(*) FROM requests WHERE trace_id = 'kept' OR trace_id IS NULL"); n != 2 {
		t.Errorf("%d rows were not changed, want 2", n)
	}
}

// documented returns the statements in the package's documentation.
func documented(t *testing.T) (statements []string) {
	t.Helper()
	doc, err := os.ReadFile("../../postgres/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	block := ""
	for line := range strings.Lines(string(doc)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			block += code
			continue
		}
		if statement, ok := strings.CutSuffix(block, ";\n"); ok {
			statements = append(statements, statement)
		}
		block = ""
	}
	return statements
}

// Scans of whole tables use trace_id_time: it is inlined.
func TestTraceIDTimeIsInlined(t *testing.T) {
	db := functions(t)
	for _, form := range []string{"text", "bytea", "uuid"} {
		db.exec("CREATE TABLE t_" + form + " (id " + form + ")")
		plan := strings.Join(column[string](db, "EXPLAIN (VERBOSE, COSTS OFF) SELECT trace_id_time(id) FROM t_"+form), "\n")
		if strings.Contains(plan, "trace_id_time") || !strings.Contains(plan, "to_timestamp") {
			t.Errorf("trace_id_time(%s) is called, not inlined:\n%s", form, plan)
		}
	}
}

// The functions' properties in the catalog.
func TestProperties(t *testing.T) {
	db := functions(t)
	db.create("") // again
	got := column[string](db, `SELECT concat(proname, ' ', provolatile, proparallel, proisstrict) FROM pg_proc
		WHERE pronamespace = 'public'::regnamespace ORDER BY 1`)
	want := []string{
		"trace_id_at vst", "trace_id_at_bytea vst", "trace_id_at_uuid vst",
		"trace_id_max ist", "trace_id_max_bytea ist", "trace_id_max_uuid ist",
		"trace_id_min ist", "trace_id_min_bytea ist", "trace_id_min_uuid ist",
		"trace_id_time isf", "trace_id_time isf", "trace_id_time ist",
		"uuid_v1_at ist", "uuid_v1_time ist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for _, call := range []string{
		"trace_id_time(NULL::text)", "trace_id_time(NULL::bytea)", "trace_id_time(NULL::uuid)",
		"trace_id_min(NULL)", "trace_id_max_uuid(NULL)", "trace_id_at(NULL)", "uuid_v1_time(NULL)", "uuid_v1_at(now(), NULL, NULL)",
	} {
		if !one[bool](db, "SELECT "+call+" IS NULL") {
			t.Errorf("%s is not NULL", call)
		}
	}
}

// The functions can be used in parallel workers.
func TestParallel(t *testing.T) {
	db := functions(t)
	db.exec("CREATE TABLE ids AS SELECT trace_id_at('2026-11-20 00:00Z'::timestamptz + n * interval '1 s') AS id FROM generate_series(0, 9999) AS n")
	db.exec("ALTER TABLE ids SET (parallel_workers = 2)")
	db.exec("ANALYZE ids")
	for _, setting := range []string{"parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"} {
		db.exec("SET " + setting + " = 0")
	}
	const scan = `SELECT count(*) FROM ids WHERE trace_id_time(id) = trace_id_time(id::uuid) AND trace_id_min(trace_id_time(id)) <= id
		AND trace_id_max(trace_id_time(id)) >= id AND trace_id_at(trace_id_time(id)) <> id
		AND uuid_v1_time(uuid_v1_at(trace_id_time(id), 1, '08:00:2b:01:02:03')) = trace_id_time(id)`
	if plan := db.plan(scan); !strings.Contains(plan, "Parallel Seq Scan") {
		t.Errorf("no parallel scan:\n%s", plan)
	}
	if n := one[int](db, scan); n != 10_000 {
		t.Errorf("%d rows agree, want 10000", n)
	}
}
