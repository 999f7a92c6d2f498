package clickhouse_test

import (
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
		s.id, s.service, s.start = uint64(1+i), oddService,
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

// listed formats the columns of a span in a search, and list those of several.
const listed = "TraceId || ' ' || toString(toUnixTimestamp64Nano(Timestamp)) || ' ' || " +
	"ServiceName || ' ' || SpanName || ' ' || toString(Duration) || ' ' || StatusCode"

func list(spans []span) []string {
	var all []string
	for _, s := range spans {
		all = append(all,
			fmt.Sprintf("%s %d %s %s %d %s", s.trace, s.start.UnixNano(), s.service, s.name,
				s.duration.Nanoseconds(), s.status))
	}
	return all
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

// TestQueriesFindWhatWasStored compares query results with the spans in Go, for a user who may
// change no settings, also through Distributed tables over two shards that have different traces.
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
				e.db = e.openAt(e.DSN() + "?readonly=1")
			}
			testTraces(t, e, s, spans)
			testNewest(t, e, s)
			if s.Cluster != "" {
				testUnusedShards(t, e, s)
			}
		})
	}
}

func testTraces(t *testing.T, e *engine, s clickhouse.Schema, spans []span) {
	byTrace := map[string][]span{}
	var order []string
	for _, s := range spans {
		if byTrace[s.trace] == nil {
			order = append(order, s.trace)
		}
		byTrace[s.trace] = append(byTrace[s.trace], s)
	}
	whole := func(traces ...string) {
		t.Helper()
		var some [][16]byte
		var want []span
		for _, id := range traces {
			some = append(some, parse(id))
			want = append(want, byTrace[id]...)
		}
		some = append(some, some[0]) // an ID may be given twice
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

// TestBucketPrunes: the query for a trace with a random ID reads the granules of its five minutes,
// although the table has spans from before 1970 and after 2106. The query for the newest traces
// reads the newest five minutes once.
func TestBucketPrunes(t *testing.T) {
	e := newEngine(t)
	for _, s := range []clickhouse.Schema{{Table: "oldest"}, {Table: "newest", Version: "26.8"}} {
		e.run(s.Statements())
		e.exec("INSERT INTO " + s.Table + " (Timestamp, TraceId) SELECT " +
			"toDateTime64('2026-10-14 00:00:00', 9) + number * 0.8, " +
			"lower(hex(MD5(toString(intDiv(number, 5))))) FROM numbers(100000)")
		e.exec("INSERT INTO " + s.Table + " (Timestamp, TraceId) VALUES " +
			"('1931-02-03 04:05:06', 'a'), ('2150-02-03 04:05:06', 'b')")
		e.exec("OPTIMIZE TABLE " + s.Table + " FINAL")
		id := e.traceIDs("SELECT TraceId FROM " + s.Table +
			" WHERE Timestamp = '2026-10-14 12:00:00'")[0]
		q, err := s.Trace(id)
		q.SQL = "EXPLAIN indexes = 1 " + q.SQL
		plan := strings.Join(e.find("explain")(q, err), "\n")
		m := regexp.MustCompile(`(?s)PrimaryKey.*?Granules: (\d+)/(\d+)`).FindStringSubmatch(plan)
		if m == nil || len(m[1]) > 1 || m[1] > "2" || len(m[2]) < 2 {
			t.Errorf("%s: the primary key selects granules %q, want at most 2 of 25:\n%s", s.Table,
				m, plan)
		}
		const dense = 150_000
		from := noon.Add(24 * time.Hour)
		e.exec(fmt.Sprintf("INSERT INTO %s (Timestamp, TraceId) SELECT fromUnixTimestamp64Nano("+
			"toInt64(%d + number * 2000000)) AS t, traceIDAt(t, 0, number) FROM numbers(%d)",
			s.Table, from.UnixNano(), dense))
		read := func() (rows int) {
			rows, _ = strconv.Atoi(e.one("SELECT value FROM system.events WHERE event = " +
				"'SelectedRows'"))
			return rows
		}
		before := read()
		found := e.find("TraceId")(s.Newest(noon, from.Add(5*time.Minute), clickhouse.Place{}, 100))
		if rows := read() - before; len(found) != 100 || rows > dense*5/4 {
			t.Errorf("%s: the %d newest of %d traces read %d rows", s.Table, len(found), dense,
				rows)
		}
	}
}

// testNewest: each trace is on exactly one page, at its first span's place, whatever its ID and
// however long it is, on pages of few traces and of all.
func testNewest(t *testing.T, e *engine, s clickhouse.Schema) {
	from, to := noon.Add(-10*time.Minute), noon.Add(50*time.Minute+time.Nanosecond)
	want := e.column(fmt.Sprintf(`SELECT
		(toUnixTimestamp64Nano(min(Timestamp)) AS first) || ' ' || TraceId || ' ' || count()
		FROM %s GROUP BY TraceId HAVING first >= %d AND first < %d
		ORDER BY first DESC, TraceId DESC`, s.Table, from.UnixNano(), to.UnixNano()))
	for _, limit := range []int{40, 10_000} {
		var got []string
		var before clickhouse.Place
		for range 100 {
			page := e.find("toUnixTimestamp64Nano(Start) || ' ' || TraceId || ' ' || Spans")(
				s.Newest(from, to, before, limit))
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			last := strings.Fields(page[len(page)-1])
			nanos, err := strconv.ParseInt(last[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			before = clickhouse.Place{Start: time.Unix(0, nanos), TraceID: parse(last[1])}
		}
		if !slices.Equal(got, want) || len(want) < 1000 {
			t.Errorf("newest, pages of %d: %d traces, want %d, or others", limit, len(got),
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
