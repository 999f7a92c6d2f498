package clickhouse_test

import (
	"cmp"
	"fmt"
	"maps"
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
	"github.com/traceflake/traceflake/traceid"
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

// TestQueriesFindWhatWasStored compares query results with the spans in Go, also through
// Distributed tables over two shards that have different traces.
func TestQueriesFindWhatWasStored(t *testing.T) {
	spans := world()
	for name, s := range map[string]clickhouse.Schema{"oldest first": {},
		"newest first": {Version: "26.8"}, "cluster": {Cluster: "{shards}"}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			s.Database, s.Table = e.Database(), "spans"
			e.tables(s)
			e.insert2(s, spans)
			testTraces(t, e, s, spans)
			testNewest(t, e, s, spans)
			from, to := noon.Add(55*time.Minute), noon.Add(65*time.Minute) // across two partitions
			want := slices.DeleteFunc(slices.Clone(spans),
				func(s span) bool { return s.start.Before(from) || !s.start.Before(to) })
			if got := e.find("SpanId")(s.Spans(from, to)); !slices.Equal(sorted(got), ids(want)) ||
				len(want) < 500 {
				t.Errorf("spans of ten minutes: %d, want %d", len(got), len(want))
			}
			testSearch(t, e, s, spans)
			testPages(t, e, s, spans)
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

func testNewest(t *testing.T, e *engine, s clickhouse.Schema, spans []span) {
	from, to := noon.Add(30*time.Minute), noon.Add(50*time.Minute)
	counts := map[string]int{}
	for _, s := range spans {
		if at := traceid.Time(parse(s.trace)); !at.Before(from) && at.Before(to) {
			counts[s.trace]++
		}
	}
	var want []string
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		want = append(want, fmt.Sprint(id, " ", counts[id]))
	}
	var got []string
	var before trace.TraceID
	for pages := 0; ; pages++ {
		page := e.find("TraceId || ' ' || toString(Spans)")(s.Newest(from, to, before, 100))
		if len(page) == 0 || pages == 100 {
			if pages != (len(want)+99)/100 {
				t.Errorf("%d pages for %d traces", pages, len(want))
			}
			break
		}
		got = append(got, page...)
		before = parse(got[len(got)-1][:32])
	}
	if !slices.Equal(got, want) {
		t.Errorf("newest: %d traces, want %d, or others", len(got), len(want))
	}
	// Bounds between two milliseconds: an ID's time is in [from, to) or not.
	at := traceid.Time(parse(spans[0].trace))
	for _, c := range []struct {
		from, to time.Time
		found    bool
	}{
		{at, at.Add(1), true}, {at.Add(-1), at, false}, {at.Add(1), at.Add(time.Second), false},
		{at.Add(-time.Hour), at.Add(time.Millisecond / 2), true},
	} {
		if got := len(
			e.find("TraceId")(s.Newest(c.from, c.to, trace.TraceID{}, 10))) > 0; got != c.found {
			t.Errorf("an ID at %v in [%v, %v): newest %v", at, c.from, c.to, got)
		}
	}
}

func testSearch(t *testing.T, e *engine, s clickhouse.Schema, spans []span) {
	for _, q := range []clickhouse.Search{
		{}, {Service: "service-2"}, {Name: "GET /1"}, {Service: "service-2", Name: "GET /1"},
		{Service: "service-2", Errors: true}, {MinDuration: 900 * time.Millisecond},
		{MaxDuration: 10 * time.Millisecond}, {Attributes: map[string]string{"user.id": "u7"}},
		{Service: "service-1", Attributes: map[string]string{"user.id": "u7"},
			ResourceAttributes: map[string]string{"host.name": "h1"}},
		{Service: "it's \\ none\t{x:String}"}, {Attributes: map[string]string{"not'there": ""}},
		{Service: oddService},
	} {
		q.From, q.To = noon, noon.Add(3*time.Hour)
		matching := slices.DeleteFunc(slices.Clone(spans),
			func(s span) bool { return !s.matches(q) })
		slices.SortFunc(matching, func(a, b span) int { return b.start.Compare(a.start) })
		for _, q.Limit = range []int{0, 1, 10_000} {
			n := min(len(matching), cmp.Or(q.Limit, 20))
			for n > 0 && n < len(matching) && matching[n].start.Equal(matching[n-1].start) {
				n++
			}
			want := sorted(list(matching[:n]))
			if got := sorted(e.find(listed)(s.Search(q))); !slices.Equal(got, want) {
				t.Errorf("search %+v: %d spans, want %d", q, len(got), len(want))
			}
		}
	}
}

// matches reports whether a search without a limit finds the span.
func (s span) matches(q clickhouse.Search) bool {
	has := func(attributes, wanted map[string]string) bool {
		for key, value := range wanted {
			if got, ok := attributes[key]; !ok || got != value {
				return false
			}
		}
		return true
	}
	return !s.start.Before(q.From) && s.start.Before(q.To) &&
		(q.Service == "" || s.service == q.Service) && (q.Name == "" || s.name == q.Name) &&
		s.duration >= q.MinDuration && (q.MaxDuration == 0 || s.duration <= q.MaxDuration) &&
		(!q.Errors || s.status == "Error") &&
		has(map[string]string{"user.id": s.user}, q.Attributes) &&
		has(map[string]string{"host.name": s.host}, q.ResourceAttributes)
}

// testPages: with clocks of milliseconds many spans have the same time, and no page loses any.
func testPages(t *testing.T, e *engine, s clickhouse.Schema, spans []span) {
	q := clickhouse.Search{From: noon, To: noon.Add(3 * time.Hour), Service: oddService, Limit: 7}
	want := sorted(
		list(slices.DeleteFunc(slices.Clone(spans),
			func(s span) bool { return s.service != oddService })))
	var got []string
	for page := e.find(listed)(s.Search(q)); len(page) > 0 &&
		len(got) <= len(want); page = e.find(listed)(s.Search(q)) {
		got = append(got, page...)
		nanos, err := strconv.ParseInt(strings.Fields(page[len(page)-1])[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		q.To = time.Unix(0, nanos)
	}
	if !slices.Equal(sorted(got), want) || len(want) != 60 {
		t.Errorf("pages of a search: %d spans, want %d", len(got), len(want))
	}
}

// TestReadOnlyUser: a user who may change no settings.
func TestReadOnlyUser(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Table: "spans"}
	e.run(s.Statements())
	odd := span{trace: traceid.Min(noon).String(), id: 5, service: "a", name: "b", start: noon,
		user: "tab\tback\\\\slash"}
	e.insert("spans", []span{odd})
	e.db = e.openAt(e.DSN() + "?readonly=1")
	if found := e.find("SpanId")(s.Trace(parse(odd.trace))); len(found) != 1 {
		t.Errorf("by ID: %q", found)
	}
	if found := e.find("TraceId")(s.Search(
		clickhouse.Search{From: noon, To: noon.Add(time.Second),
			Attributes: map[string]string{"user.id": "tab\tback\\slash"}})); len(found) != 1 {
		t.Errorf("by attribute: %q", found)
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
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
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
