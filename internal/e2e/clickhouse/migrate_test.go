package clickhouse_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// few are spans of two days.
func few() []span {
	var few []span
	for i, s := range world()[:900] {
		s.start = noon.Add(time.Duration(i%2) * 24 * time.Hour).Add(time.Duration(i) * time.Second)
		few = append(few, s)
	}
	return few
}

func ids(spans []span) []string { return sorted(names(spans, func(span) bool { return true })) }

func (e *engine) column(query string) []string {
	e.t.Helper()
	var all []string
	for _, row := range e.exec(query) {
		all = append(all, row[0])
	}
	return all
}

// TestMigrateFromAnyPoint breaks the connection before each statement, which is
// also after the one before it, stores more spans, and runs the migration again.
func TestMigrateFromAnyPoint(t *testing.T) {
	e := newEngine(t)
	old := few()
	live := world()[1000:1010]
	e.run(collectorTable("template")[:1], nil)
	e.insert("template", old)
	finished := 0
	for at := 1; finished < 1; at++ {
		if at == 3 {
			at = 9 // between two functions is nothing new
		}
		table := fmt.Sprintf("spans_%d", at)
		e.run(collectorTable(table), nil)
		e.exec("INSERT INTO " + table + " SELECT * FROM template")
		s := clickhouse.Schema{Database: e.Database(), Table: table, TTL: 10 * 365 * 24 * time.Hour}
		err := s.Migrate(t.Context(), e.faulty(&faulty{failAt: at}), nil)
		if err == nil {
			finished++
		} else if !errors.Is(err, errFaulty) {
			t.Fatal(err)
		}
		e.insert(table, live)
		var seen []clickhouse.Progress
		if err := s.Migrate(t.Context(), e.db, func(p clickhouse.Progress) { seen = append(seen, p) }); err != nil {
			t.Fatalf("again after statement %d: %v", at, err)
		}
		if got := e.column("SELECT SpanId FROM " + table + " ORDER BY SpanId"); !reflect.DeepEqual(got, ids(append(live[:len(live):len(live)], old...))) {
			t.Fatalf("statement %d: %d spans, want %d", at, len(got), len(old)+len(live))
		}
		kept := len(e.column("SELECT SpanId FROM " + table + "_old"))
		if kept != len(old) && kept != len(old)+len(live) { // the live ones too if they came before the tables changed places
			t.Errorf("statement %d: %d old spans kept, want %d", at, kept, len(old))
		}
		if at == 1 {
			if n := len(seen); n != 2 && n != 3 || seen[n-1].Left != 0 || int(seen[n-1].Moved) != kept {
				t.Errorf("progress %+v", seen)
			}
		}
		if left := e.column("SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '" + table + "_') AND name != '" + table + "_old'"); left != nil {
			t.Errorf("statement %d: tables left: %v", at, left)
		}
		if key := e.one("SELECT sorting_key FROM system.tables WHERE database = currentDatabase() AND name = '" + table + "'"); key != "TraceId" {
			t.Errorf("sorting key %s", key)
		}
		e.exec("DROP TABLE " + table + " SYNC")
		e.exec("DROP TABLE " + table + "_old SYNC")
		if at > 100 {
			t.Fatal("the migration does not end")
		}
	}
}

// TestMigrateToCluster runs the statements for a cluster on one server.
func TestMigrateToCluster(t *testing.T) {
	e := newEngine(t)
	old := few()
	e.run(collectorTable("template")[:1], nil)
	e.insert("template", old)
	for at := 0; at < 36; at += 3 {
		table := fmt.Sprintf("spans_%d", at)
		owned := clickhouse.Schema{Database: e.Database(), Table: table}
		if err := owned.Create(t.Context(), e.db); err != nil {
			t.Fatal(err)
		}
		e.exec("INSERT INTO " + table + " SELECT * FROM template")
		cluster := owned
		cluster.Cluster = "c"
		if err := cluster.Migrate(t.Context(), e.faulty(&faulty{failAt: at, rewrite: oneServer}), nil); err != nil && !errors.Is(err, errFaulty) {
			t.Fatal(err)
		}
		if err := cluster.Migrate(t.Context(), e.faulty(&faulty{rewrite: oneServer}), nil); err != nil {
			t.Fatalf("again after statement %d: %v", at, err)
		}
		for _, name := range []string{"", "_local"} {
			if got := e.column("SELECT SpanId FROM " + table + name + " ORDER BY SpanId"); !reflect.DeepEqual(got, ids(old)) {
				t.Fatalf("statement %d: %d spans in %s, want %d", at, len(got), table+name, len(old))
			}
		}
		if left := e.column("SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '" + table + "') AND name NOT IN ('" +
			table + "', '" + table + "_local', '" + table + "_old')"); left != nil {
			t.Errorf("statement %d: tables left: %v", at, left)
		}
		for _, name := range []string{"", "_local", "_old"} {
			e.exec("DROP TABLE " + table + name + " SYNC")
		}
	}
}

func TestMigrateRefuses(t *testing.T) {
	e := newEngine(t)
	for table, statements := range map[string]struct {
		make []string
		want string
	}{
		"extra": {append(collectorTable("extra")[:1], "ALTER TABLE extra ADD COLUMN Tenant String"), "Tenant"},
		"other": {[]string{"CREATE TABLE other (TraceId String, Timestamp DateTime) ENGINE = MergeTree ORDER BY TraceId SETTINGS index_granularity = 8192"}, "another shape"},
		"logs":  {[]string{"CREATE TABLE logs (Body String) ENGINE = MergeTree ORDER BY Body"}, "column Timestamp"},
		"twice": {append(collectorTable("twice")[:1], "CREATE TABLE twice_old (x Int8) ENGINE = Memory"), "twice_old is there"},
	} {
		e.run(statements.make, nil)
		before := e.one("SHOW CREATE TABLE " + table)
		err := clickhouse.Schema{Table: table}.Migrate(t.Context(), e.db, nil)
		if err == nil || !strings.Contains(err.Error(), statements.want) {
			t.Errorf("%s: error %v, want %q", table, err, statements.want)
		}
		if after := e.one("SHOW CREATE TABLE " + table); after != before {
			t.Errorf("%s was changed to %s", table, after)
		}
	}
	if err := (clickhouse.Schema{Layout: clickhouse.Overlay}).Migrate(t.Context(), e.db, nil); err == nil {
		t.Error("there is no migration to an overlay")
	}
	if err := (clickhouse.Schema{Table: "fresh"}).Migrate(t.Context(), e.db, nil); err != nil {
		t.Errorf("nothing to migrate: %v", err)
	}
	if got := e.one("SELECT count() FROM fresh"); got != "0" {
		t.Errorf("%s rows", got)
	}
}
