package clickhouse_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
)

func TestCreateAgainAndElsewhere(t *testing.T) {
	e := newEngine(t)
	for _, s := range []clickhouse.Schema{
		{},
		{Database: e.Database(), Table: "odd-name", TTL: 24 * time.Hour},
		{Layout: clickhouse.Overlay},
		{Layout: clickhouse.Overlay, Table: "not_there_yet"},
	} {
		for range 2 {
			if err := s.Create(t.Context(), e.db); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	}
	if got := e.one("SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'odd-name'"); !strings.Contains(got, "TTL toDateTime(Timestamp) + toIntervalSecond(86400)") {
		t.Errorf("TTL: %s", got)
	}
	longer := clickhouse.Schema{Table: "odd-name", TTL: 48 * time.Hour}
	e.run(longer.TTLStatements(false))
	if got := e.one("SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = 'odd-name'"); !strings.Contains(got, "toIntervalSecond(172800)") {
		t.Errorf("TTL: %s", got)
	}
	longer.TTL = 0
	e.run(longer.TTLStatements(false))
}

func TestTTLDropsOldSpans(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Table: "spans", TTL: 24 * time.Hour}
	e.run(s.Statements())
	e.exec("SYSTEM STOP TTL MERGES spans")
	now := time.Now()
	old := span{trace: idgen.MinTraceID(now).String(), id: 1, service: "a", name: "b", start: now.Add(-72 * time.Hour)}
	young := old
	young.id, young.start = 2, now
	e.insert("spans", []span{old, young})
	e.exec("SYSTEM START TTL MERGES spans")
	e.exec("OPTIMIZE TABLE spans FINAL")
	if got := fmt.Sprint(e.column("SELECT SpanId FROM spans")); got != "[0000000000000002]" {
		t.Errorf("spans left: %s", got)
	}
}

// TestDeleteKeepsTheProjectionRight: what is deleted is not found in the projection either.
func TestDeleteKeepsTheProjectionRight(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Table: "spans"}
	e.run(s.Statements())
	spans := few()
	e.insert("spans", spans)
	e.exec("DELETE FROM spans WHERE ServiceName = 'service-1'")
	e.exec("OPTIMIZE TABLE spans FINAL")
	var left []span
	for _, s := range spans {
		if s.service != "service-1" {
			left = append(left, s)
		}
	}
	got := e.find(listed)(s.Search(clickhouse.Search{From: noon.Add(-time.Hour), To: noon.Add(100 * time.Hour), Limit: 10_000}))
	if fmt.Sprint(sorted(got)) != fmt.Sprint(sorted(list(left))) {
		t.Errorf("%d spans, want %d", len(got), len(left))
	}
	got = e.find(listed)(s.Search(clickhouse.Search{From: noon.Add(-time.Hour), To: noon.Add(100 * time.Hour), Service: "service-2", Limit: 10_000}))
	if want := sorted(list(slices.DeleteFunc(left, func(s span) bool { return s.service != "service-2" }))); fmt.Sprint(sorted(got)) != fmt.Sprint(want) {
		t.Errorf("of service-2 %d spans, want %d", len(got), len(want))
	}
}

func TestOtherShape(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans")[:1], nil)
	e.exec("CREATE TABLE logs (Body String) ENGINE = MergeTree ORDER BY Body")
	for _, s := range []clickhouse.Schema{{Table: "spans"}, {Table: "logs"}, {Table: "logs", Layout: clickhouse.Overlay}} {
		before := e.one("SHOW CREATE TABLE " + s.Table)
		if err := s.Create(t.Context(), e.db); err == nil || !strings.Contains(err.Error(), "traceflake: table "+s.Table+" has") {
			t.Errorf("%+v: %v", s, err)
		}
		if after := e.one("SHOW CREATE TABLE " + s.Table); after != before {
			t.Errorf("%s was changed", s.Table)
		}
	}
	if err := (clickhouse.Schema{Table: "spans", Layout: clickhouse.Overlay}).Create(t.Context(), e.db); err != nil {
		t.Error(err)
	}
	if err := (clickhouse.Schema{Database: "not_there"}).Create(t.Context(), e.db); err == nil || !strings.Contains(err.Error(), "not_there") {
		t.Errorf("no such database: %v", err)
	}
}

// TestVersionGuard runs the guard as a server of another version would.
func TestVersionGuard(t *testing.T) {
	e := newEngine(t)
	for layout, cases := range map[clickhouse.Layout]map[string]bool{
		clickhouse.Owned:   {"25.3.9.1": false, "25.4.1.1": true, "9.12.1": false, "26.1.1.1": true, "25.12.1.1": true},
		clickhouse.Overlay: {"24.2.9.1": false, "24.3.1.1": true},
	} {
		s := clickhouse.Schema{Layout: layout}
		statements, err := s.Statements()
		if err != nil {
			t.Fatal(err)
		}
		for version, ok := range cases {
			guard := strings.ReplaceAll(statements[0], "version()", "'"+version+"'")
			if ok {
				e.exec(guard)
			} else {
				e.fails(guard, "traceflake: the server is too old")
			}
			if err := s.CheckVersion(version); (err == nil) != ok {
				t.Errorf("CheckVersion(%s) = %v", version, err)
			}
		}
	}
}

// TestMissingRights runs the statements as a user who may do less and less.
func TestMissingRights(t *testing.T) {
	e := newEngine(t)
	user := "u_" + e.Database()
	if _, err := e.Query(t.Context(), "CREATE USER "+user); err != nil {
		t.Skipf("this server keeps no users: %v", err)
	}
	defer e.exec("DROP USER " + user)
	statements, err := clickhouse.Schema{Database: e.Database()}.Statements()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, statement := range statements {
		_, err := e.Query(t.Context(), "EXECUTE AS "+user+" "+statement)
		if err != nil && strings.Contains(err.Error(), "grant") {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	if got := e.one("SELECT count() FROM system.tables WHERE database = currentDatabase()"); got != "0" {
		t.Errorf("%s tables", got)
	}
	for _, right := range []string{"CREATE FUNCTION, DROP FUNCTION ON *.*", "CREATE TABLE, SHOW, SELECT ON " + e.Database() + ".*", "SELECT ON system.*"} {
		e.exec("GRANT " + right + " TO " + user)
	}
	for _, statement := range statements {
		e.exec("EXECUTE AS " + user + " " + statement)
	}
}

// TestRefusedStatement: the error names the statement and the right.
func TestRefusedStatement(t *testing.T) {
	e := newEngine(t)
	if _, err := e.Query(t.Context(), "CREATE USER somebody"); err == nil {
		e.exec("DROP USER somebody")
		t.Skip("this user may do everything")
	}
	db := e.faulty(&faulty{rewrite: func(query string) string {
		if strings.HasPrefix(query, "CREATE TABLE") {
			return "CREATE USER somebody"
		}
		return query
	}})
	err := clickhouse.Schema{}.Create(t.Context(), db)
	if err == nil || !strings.Contains(err.Error(), "CREATE TABLE IF NOT EXISTS `otel_traces`") || !strings.Contains(err.Error(), "necessary to have the grant") {
		t.Error(err)
	}
}

// TestClusterStatementsParse: a server without Keeper can read them, if not run them.
func TestClusterStatementsParse(t *testing.T) {
	e := newEngine(t)
	for _, cluster := range []string{"c", "{cluster}"} {
		s := clickhouse.Schema{Database: "d", Table: "spans", Cluster: cluster, TTL: time.Hour}
		statements, err := s.Statements()
		if err != nil {
			t.Fatal(err)
		}
		ttl, err := s.TTLStatements(false)
		if err != nil {
			t.Fatal(err)
		}
		drop, err := s.DropLookup()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, statement := range append(append(statements, ttl...), drop...) {
			e.exec("EXPLAIN AST " + statement)
			if strings.Contains(statement, "ON CLUSTER") {
				n++
			}
		}
		if n != 7+2+1+2 {
			t.Errorf("%d statements name the cluster", n)
		}
	}
}

// TestSharding: the expression of the Distributed table spreads a minute's
// traces evenly over 16 shards, and keeps each on one.
func TestSharding(t *testing.T) {
	e := newEngine(t)
	statements, err := clickhouse.Schema{Cluster: "c"}.Statements()
	if err != nil {
		t.Fatal(err)
	}
	var expression string
	for _, statement := range statements {
		if _, after, ok := strings.Cut(statement, "`otel_traces_local`, "); ok {
			expression = strings.TrimSuffix(after, ")")
		}
	}
	e.exec("CREATE TABLE ids (TraceId String) ENGINE = MergeTree ORDER BY TraceId")
	generator := idgen.New()
	var values strings.Builder
	const n = 32_000
	for i := range n {
		id, err := generator.NewTraceIDAt(noon.Add(time.Duration(i) * time.Minute / n))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&values, "('%s')", id)
	}
	e.exec("INSERT INTO ids VALUES " + values.String())
	chi := 0.0
	rows := e.exec("SELECT count() FROM ids GROUP BY " + expression + " % 16")
	for _, row := range rows {
		count, _ := strconv.ParseFloat(row[0], 64)
		chi += (count - n/16) * (count - n/16) / (n / 16)
	}
	if len(rows) != 16 || chi > 50 { // 15 degrees of freedom: above 50 once in 80 000 runs
		t.Errorf("%d shards, chi-square %.1f", len(rows), chi)
	}
	for _, odd := range []string{"", "abc", strings.Repeat("z", 32), strings.Repeat("F", 32)} {
		e.exec("SELECT " + strings.ReplaceAll(expression, "TraceId", "'"+odd+"'") + " % 16")
	}
}

// TestSampleCondition: ClickHouse's share is what the sampler keeps.
func TestSampleCondition(t *testing.T) {
	e := withFunctions(t)
	ids := append(edges(), random(50_000)...)
	e.exec("CREATE TABLE ids (TraceId String) ENGINE = MergeTree ORDER BY TraceId")
	var values strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&values, "('%s')", id)
	}
	e.exec("INSERT INTO ids VALUES " + values.String())
	for _, ratio := range []float64{-1, 0, 1e-18, 0.001, 0.1, 0.25, 1. / 3, 0.5, 0.999999, 1, 2} {
		sampler := sdktrace.TraceIDRatioBased(ratio)
		kept := map[string]bool{}
		for _, id := range ids {
			if sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: t.Context(), TraceID: id}).Decision == sdktrace.RecordAndSample {
				kept[id.String()] = true
			}
		}
		got := e.column("SELECT DISTINCT TraceId FROM ids WHERE " + clickhouse.SampleCondition(ratio))
		if len(got) != len(kept) {
			t.Errorf("ratio %v: %d traces, the sampler keeps %d", ratio, len(got), len(kept))
		}
		for _, id := range got {
			if !kept[id] {
				t.Fatalf("ratio %v: the sampler drops %s", ratio, id)
			}
		}
	}
	if clickhouse.SampleCondition(math.NaN()) != "0" {
		t.Error("NaN keeps something")
	}
}

// TestForeignIDsMakeNoPartitions: a block of random IDs goes into one.
func TestForeignIDsMakeNoPartitions(t *testing.T) {
	e := newEngine(t)
	e.run(clickhouse.Schema{Table: "spans"}.Statements())
	var spans []span
	for i, id := range random(1000) {
		spans = append(spans, span{trace: id.String(), id: uint64(i + 1), service: "a", name: "b", start: noon})
	}
	e.insert("spans", spans)
	if got := e.one("SELECT uniqExact(partition_id) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'spans'"); got != "1" {
		t.Errorf("%s partitions", got)
	}
}
