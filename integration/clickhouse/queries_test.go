package clickhouse_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
)

var noon = time.Date(2026, 10, 14, 23, 0, 0, 0, time.UTC) // an hour before a partition ends

// world returns two hours of traces, some of them foreign, late, long or broken.
func world() []span {
	r := rand.New(rand.NewPCG(3, 4))
	generator := idgen.New()
	var spans []span
	for i := range 3000 {
		at := noon.Add(time.Duration(i) * 2400 * time.Millisecond)
		trace, err := generator.NewTraceIDAt(at)
		if err != nil {
			panic(err)
		}
		id := trace.String()
		if i%10 == 3 {
			id = fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
		}
		n := 1 + r.IntN(8)
		root := r.Uint64() | 1
		for k := range n {
			s := span{trace: id, id: root + uint64(k),
				service:  fmt.Sprintf("service-%d", r.IntN(5)),
				name:     fmt.Sprintf("GET /%d", r.IntN(4)),
				start:    at.Add(time.Duration(r.IntN(500_000_000))),
				duration: time.Duration(r.IntN(1_000_000_000)),
				status:   map[bool]string{true: "Error", false: "Unset"}[r.IntN(20) == 0],
				user:     fmt.Sprint("u", r.IntN(40)), host: fmt.Sprint("h", r.IntN(3))}
			switch s.parent = hex(root); {
			case k == 0 && i%100 == 30: // the root is not stored
				s.parent = hex(7)
			case k == 0 && i%100 == 40: // a clock two minutes behind
				s.start, s.parent = at.Add(-2*time.Minute), ""
			case k == 0:
				s.start, s.parent = at, ""
			case k == 1 && i%10 == 5: // of an SDK whose clock has milliseconds
				parent := &spans[len(spans)-1]
				parent.service, parent.status, parent.user = "service-1", "Error", "u0"
				s.service, s.status, s.user, s.start = "service-1", "Error", "u1", at
			case k == 1 && i%100 == 10: // late
				s.start = at.Add(3 * time.Hour)
			case k == n-1 && k > 1 && i%100 == 20: // late, and no child
				s.start, s.parent = at.Add(30*time.Minute), ""
			}
			spans = append(spans, s)
		}
	}
	for i := range 60 { // a service with an odd name and a clock of 100 ms
		s := spans[10*i]
		s.id, s.service, s.status, s.user, s.start = uint64(1+i), oddService, "Error", "u1",
			noon.Add(2*time.Hour+time.Duration(i/11)*100*time.Millisecond)
		s.trace, s.parent = fmt.Sprintf("%032x", 1+i), ""
		spans = append(spans, s)
	}
	return spans
}

// oddService has all characters that quoting must handle.
const oddService = `it's "a" \n {x:String} ${y} --`

func ids(spans []span) (all []string) {
	for _, s := range spans {
		all = append(all, hex(s.id))
	}
	return sorted(all)
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

// TestQueriesFindWhatWasStored compares query results with the spans in Go, for a user who may
// change no settings, with an empty lookup table, as after ATTACH PARTITION, and through
// Distributed tables over two shards that have different traces.
func TestQueriesFindWhatWasStored(t *testing.T) {
	spans := world()
	for name, s := range map[string]clickhouse.Schema{"oldest first": {},
		"newest first": {Version: "26.8"}, "cluster": {Cluster: "{shards}"}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if s.Version != "" && e.Rows(t, "SELECT toFloat64(extract(version(), "+
				"'^[^.]*.[^.]*')) < 26.7")[0][0] == "1" {
				t.Skip("a descending key is an experiment before ClickHouse 26.7")
			}
			s.Database, s.Table = e.Database(), "spans"
			e.tables(s)
			e.insert2(s, spans)
			if s.Cluster == "" {
				e.exec("TRUNCATE TABLE spans_trace_id_ts")
				e.db = e.openAt(e.DSN() + "?readonly=1")
			}
			testTraces(t, e, s, spans)
			testNewest(t, e, s)
			testSearch(t, e, s)
			if s.Cluster != "" {
				testUnusedShards(t, e, s)
			}
		})
	}
}

func testTraces(t *testing.T, e *engine, s clickhouse.Schema, spans []span) {
	var order []string
	for _, s := range spans {
		order = append(order, s.trace)
	}
	order = slices.Compact(order)
	whole := func(traces ...string) {
		t.Helper()
		var some [][16]byte
		for _, id := range append(traces, traces[0]) { // an ID may be given twice
			some = append(some, parse(id))
		}
		want := slices.DeleteFunc(slices.Clone(spans),
			func(s span) bool { return !slices.Contains(traces, s.trace) })
		got := e.find("SpanId")(clickhouse.Traces(s, some))
		if !slices.Equal(sorted(got), ids(want)) {
			t.Errorf("%d traces from %s: %d spans, want %d", len(traces), traces[0], len(got),
				len(want))
		}
	}
	for i := range 500 {
		if i%10 == 0 || i%100 == 3 { // all kinds stand at multiples of ten, but the foreign IDs
			whole(order[i])
		}
	}
	whole(order[:100]...)
	whole(order[1000:1100]...)
	whole(order[0], order[2990]) // two hours later
	whole(trace.TraceID{1}.String())
}

var lookupDays = flag.Int("lookup-days", 2, "days of TestLookupReads, of 500,000 spans each")

// TestLookupReads: whatever its age, a trace with a random ID is found by its ID alone for a
// twentieth of the table's IDs, and for less than by the lookup table of the exporter's table. The
// newest traces are listed for their hour. The tables have spans from before 1970 and after 2106.
func TestLookupReads(t *testing.T) {
	e := newEngine(t)
	const perDay = 500_000
	from := time.Date(2026, 10, 14, 0, 0, 0, 0, time.UTC)
	e.run(collectorTable("exporter"), nil)
	for _, s := range []clickhouse.Schema{{Table: "oldest"}, {Table: "newest", Version: "26.8"}} {
		e.run(s.Statements())
	}
	for _, table := range []string{"exporter", "oldest", "newest"} {
		for day := range *lookupDays {
			e.exec(fmt.Sprintf(`INSERT INTO %s (Timestamp, TraceId, SpanId, ServiceName, SpanName,
				Duration, SpanAttributes)
				SELECT toDateTime64('%s', 9, 'UTC') + number * 0.1728,
				lower(hex(sipHash128(%d, intDiv(number, 5)))), lower(hex(sipHash64(number))) AS id,
				's' || number %% 25, 'n' || number %% 8, sipHash64(id) %% 1000000000,
				map('user', toString(sipHash64(id, 1))) FROM numbers(%d)`, table,
				from.AddDate(0, 0, day).Format(time.DateTime), day, perDay))
		}
		e.exec("INSERT INTO " + table + " (Timestamp, TraceId) VALUES " +
			"('1931-02-03 04:05:06', 'a'), ('2150-02-03 04:05:06', 'b')")
		e.exec("OPTIMIZE TABLE " + table + " FINAL")
	}
	const alone = "SELECT * FROM {table} WHERE TraceId = '{id}'"
	const twoSteps = "WITH (SELECT (min(Start), max(End) + 1) FROM {table}_trace_id_ts WHERE " +
		"TraceId = '{id}') AS times " + alone + " AND Timestamp BETWEEN times.1 AND times.2"
	spans := uint64(perDay * *lookupDays)
	for age := 1; age <= *lookupDays; age = min(age*2, max(age+1, *lookupDays)) {
		id := e.one("SELECT any(TraceId) FROM oldest WHERE Timestamp = '" +
			from.AddDate(0, 0, *lookupDays-age).Add(12*time.Hour).Format(time.DateTime) + "'")
		reads := func(table, query string) (rows, bytes uint64) {
			r, err := e.Reads(t.Context(),
				strings.NewReplacer("{table}", table, "{id}", id).Replace(query))
			if err != nil || len(r.Rows) != 5 {
				t.Fatalf("%s: %d spans, %v", table, len(r.Rows), err)
			}
			t.Logf("%2d days old, %-8s %7d rows, %9d bytes", age, table, r.Read.Rows, r.Read.Disk)
			return r.Read.Rows, r.Read.Disk
		}
		_, most := reads("exporter", twoSteps)
		reads("exporter", alone)
		for _, table := range []string{"oldest", "newest"} {
			if rows, bytes := reads(table, alone); rows > spans/20 || bytes > most {
				t.Errorf("want at most %d rows and %d bytes", spans/20, most)
			}
		}
	}
	from = from.AddDate(0, 0, *lookupDays-1).Add(12 * time.Hour)
	to := stamp(from.Add(5 * time.Minute))
	for _, table := range []string{"oldest", "newest"} {
		selected := func() (rows int) {
			rows, _ = strconv.Atoi(e.one("SELECT value FROM system.events WHERE event = " +
				"'SelectedRows'"))
			return rows
		}
		before := selected()
		q, err := documented("**The newest traces", table, "from", stamp(from), "to", to,
			"first", to, "last", "")
		if found := e.find("TraceId")(q, err); len(found) != 100 {
			t.Errorf("%s: %d traces, want 100", table, len(found))
		}
		if rows := selected() - before; rows > int(spans/10) {
			t.Errorf("%s: a list reads %d rows of %d", table, rows, spans)
		}
	}
}

// documented returns the SQL of the page after a heading, for a table, as a query with the names
// and values of parameters.
func documented(heading, table string, params ...string) (q clickhouse.Query, err error) {
	_, after, found := strings.Cut(read("../../docs/clickhouse.md"), "\n"+heading)
	block := sqlBlock.FindStringSubmatch(after)
	if !found || block == nil {
		return q, fmt.Errorf("the page has no SQL after %q", heading)
	}
	q.SQL = strings.ReplaceAll(strings.TrimSpace(block[1]), "otel_traces", table)
	for pair := range slices.Chunk(params, 2) {
		q.Params = append(q.Params, clickhouse.Param{Name: pair[0], Value: pair[1]})
	}
	return q, nil
}

// stamp returns a time as a parameter of ClickHouse.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000000") }

// testNewest: the documented list of a period has each trace that has spans in it on one page, by
// its first span in the period, with its spans of an hour around, on pages of few traces and of
// all, although the lookup table has none of them.
func testNewest(t *testing.T, e *engine, s clickhouse.Schema) {
	from, to := noon.Add(-10*time.Minute), noon.Add(50*time.Minute+time.Nanosecond)
	want := e.column(fmt.Sprintf(`SELECT
		(toUnixTimestamp64Nano(minIf(Timestamp, Timestamp >= begin AND Timestamp < end)) AS first)
			|| ' ' || TraceId || ' ' ||
			countIf(Timestamp >= begin - 3600 AND Timestamp < end + 3600)
		FROM (SELECT *, fromUnixTimestamp64Nano(%d) AS begin, fromUnixTimestamp64Nano(%d) AS end
			FROM %s)
		GROUP BY TraceId HAVING countIf(Timestamp >= begin AND Timestamp < end) > 0
		ORDER BY first DESC, TraceId DESC`, from.UnixNano(), to.UnixNano(), s.Table))
	for _, limit := range []int{40, 10_000} {
		var got []string
		first, last := stamp(to), ""
		for range 100 {
			q, err := documented("**The newest traces", s.Table, "from", stamp(from),
				"to", stamp(to), "first", first,
				"last", last)
			q.SQL = strings.Replace(q.SQL, "LIMIT 100)", fmt.Sprintf("LIMIT %d)", limit), 1)
			page := e.find("toUnixTimestamp64Nano(First) || ' ' || TraceId || ' ' || Spans")(q, err)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			end := strings.Fields(page[len(page)-1])
			nanos, err := strconv.ParseInt(end[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			first, last = stamp(time.Unix(0, nanos)), end[1]
		}
		if !slices.Equal(got, want) || len(want) < 1000 {
			t.Errorf("newest, pages of %d: %d traces, want %d, or others", limit, len(got),
				len(want))
		}
	}
}

// testSearch: the documented search returns each span that meets its conditions on one page, and no
// other, although a parent and its child begin at the same time, as with the SDK for JavaScript.
func testSearch(t *testing.T, e *engine, s clickhouse.Schema) {
	for _, service := range []string{"service-1", oddService} { // of which many have one time
		var want, got []string
		for _, s := range world() {
			if s.service == service && s.status == "Error" && s.user == "u1" {
				want = append(want, hex(s.id))
			}
		}
		to := stamp(noon.Add(24 * time.Hour))
		for range 1000 {
			q, err := documented("**A search", s.Table, "service", service, "user", "u1",
				"from", stamp(noon.Add(-time.Hour)), "to", to)
			q.SQL = strings.Replace(q.SQL, "LIMIT 50", "LIMIT 7", 1)
			page := e.find("SpanId || ' ' || toString(Timestamp, 'UTC')")(q, err)
			if len(page) == 0 {
				break
			}
			for _, row := range page {
				var id string
				id, to, _ = strings.Cut(row, " ")
				got = append(got, id)
			}
		}
		if !slices.Equal(sorted(got), sorted(want)) || len(want) < 50 {
			t.Errorf("the search in %s returns %d spans, want %d, or others", service, len(got),
				len(want))
		}
	}
}

// The cluster "two" of testdata/engine.xml has two shards in one engine: each table that holds rows
// is created twice, as NAME_1 and NAME_2 for NAME_local, which is a view that shows a shard its
// own. It does not test connections between servers or replicas.
var (
	local     = regexp.MustCompile("`([a-z_]+)_local(_[a-z_]+)?`")
	onCluster = regexp.MustCompile(" ON CLUSTER [`'][a-z{}]+[`']")
)

// tables runs the statements of a schema, with a cluster on two shards.
func (e *engine) tables(s clickhouse.Schema) {
	e.t.Helper()
	if s.Cluster == "" {
		e.run(s.Statements())
		return
	}
	if os.Getenv("TRACEFLAKETEST_CLICKHOUSE_DSN") != "" {
		e.t.Skip("for the embedded engine only")
	}
	statements, err := s.Statements()
	if err != nil {
		e.t.Fatal(err)
	}
	for _, statement := range statements {
		if e.exec("EXPLAIN AST " + statement); !onCluster.MatchString(statement) {
			e.t.Errorf("only on one server: %s", statement)
		}
		statement = strings.ReplaceAll(onCluster.ReplaceAllString(statement, ""),
			"ReplicatedMergeTree", "MergeTree")
		switch {
		case strings.Contains(statement, "ENGINE = Distributed"):
			e.exec(statement)
		case local.MatchString(statement):
			for _, shard := range []string{"_1", "_2"} {
				e.exec(local.ReplaceAllString(statement, "`${1}"+shard+"${2}`"))
			}
			if of := local.FindStringSubmatch(statement); strings.HasPrefix(statement,
				"CREATE TABLE") {
				e.exec(fmt.Sprintf("CREATE VIEW %[1]s_local%[2]s AS SELECT * FROM "+
					"merge(currentDatabase(), '^%[1]s_[12]%[2]s$') WHERE _table = '%[1]s_' || "+
					"toString(shardNum()) || '%[2]s'", of[1], of[2]))
			}
		default:
			e.exec(statement)
		}
	}
}

// insert2 stores spans, with a cluster in the tables in which the Distributed table looks for their
// traces.
func (e *engine) insert2(s clickhouse.Schema, spans []span) {
	e.t.Helper()
	if s.Cluster == "" {
		e.insert(s.Table, spans)
		return
	}
	for shard := range 2 {
		own := slices.DeleteFunc(slices.Clone(spans),
			func(s span) bool { return int(parse(s.trace)[15])%2 != shard })
		e.insert(fmt.Sprint(s.Table, "_", 1+shard), own)
	}
}

// testUnusedShards: with known IDs the Distributed table queries only the shard that has the
// traces.
func testUnusedShards(t *testing.T, e *engine, s clickhouse.Schema) {
	ids := e.traceIDs("SELECT DISTINCT TraceId FROM spans_2 WHERE TraceId > " +
		"traceIDMin('2026-10-14 22:00:00') ORDER BY TraceId LIMIT 100")
	e.exec("CREATE OR REPLACE VIEW spans_local AS SELECT * FROM spans_2 WHERE throwIf(shardNum() " +
		"= 1, 'this shard was asked') = 0")
	e.fails("SELECT count() FROM spans", "this shard was asked")
	for _, some := range [][]trace.TraceID{ids[:1], ids} {
		if found := e.find("SpanId")(clickhouse.Traces(s, some)); len(found) < len(some) {
			t.Errorf("%d spans of %d traces", len(found), len(some))
		}
	}
}
