package clickhouse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// copying returns the table spans, swapped, with spans of two days in the old table and other spans
// in the new one.
func (e *engine) copying() (all []span) {
	e.t.Helper()
	e.run(collectorTable("spans"), nil)
	e.exec("ALTER TABLE spans ADD COLUMN Tenant String DEFAULT 'nobody', ADD COLUMN Kind String " +
		"MATERIALIZED SpanKind, ADD COLUMN Stored DateTime64(9) MATERIALIZED now64(9)")
	e.exec("CREATE TABLE rollup (SpanId String) ENGINE = MergeTree ORDER BY SpanId")
	e.exec("CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT SpanId FROM spans")
	all = few()
	e.insert("spans", all[:200])
	e.exec("INSERT INTO spans (Timestamp, TraceId, SpanId, Tenant) VALUES ('2026-10-15 " +
		"12:00:00', '" + all[0].trace + "', 'tenants', 'somebody')")
	e.walks(ofSpans, "prepare", "swap")
	e.insert("spans", all[200:])
	e.exec("CREATE TABLE stamps ENGINE = Memory AS SELECT SpanId, Stored FROM spans_all")
	for _, name := range othersTables {
		e.exec("CREATE TABLE " + name + " ENGINE = MergeTree ORDER BY x AS SELECT 1 AS x")
	}
	return all
}

// complete checks that each span is stored once, and that a lookup finds whole traces.
func (e *engine) complete(when string, all []span) {
	e.t.Helper()
	for table, want := range map[string][]string{"spans_all": append(ids(all), "tenants"),
		"rollup": append(ids(all), "tenants")} {
		if got := e.column("SELECT SpanId FROM " + table + " ORDER BY SpanId"); !slices.Equal(got,
			sorted(want)) {
			e.t.Fatalf("%s: %s has %d rows, want %d, or others", when, table, len(got), len(want))
		}
	}
	e.is("somebody", "SELECT any(Tenant) FROM spans_all WHERE SpanId = 'tenants'")
	e.is("0", "SELECT count() FROM spans_all WHERE (SpanId, Stored) NOT IN stamps")
	e.is(fmt.Sprint(len(othersTables)), "SELECT count() FROM merge(currentDatabase(), '^("+
		strings.Join(othersTables, "|")+")$')")
}

// othersTables are tables of others, with names like those of an adoption.
var othersTables = []string{"spans_copy", "spans_copied_20261014_abcdefgh", "spans_trial",
	"spans_traceflake_copied_2026"}

// TestCopy moves history into the new table, a day or all, and after undo the spans stored
// meanwhile into the old one: each span once, with its columns and without materialized views.
func TestCopy(t *testing.T) {
	e := newEngine(t)
	all := e.copying()
	plan, err := ofSpans.Copy(t.Context(), e.db, time.Time{})
	if err != nil || len(plan.Steps) != 0 || len(plan.Notes) != 2 ||
		!strings.Contains(plan.Notes[0], "was written within ten minutes") {
		t.Errorf("copying what is still written: %+v, %v", plan, err)
	}
	_, err = ofSpans.Copy(t.Context(), e.rewriting("", func(query string) string {
		return strings.Replace(query, "(SELECT engine FROM", "(SELECT 'Replicated' FROM", 1)
	}), noon)
	if err == nil || !strings.Contains(err.Error(), "with the engine Replicated, only in") {
		t.Errorf("in a replicated database: %v", err)
	}
	e.exec("ALTER TABLE spans_other ADD COLUMN Later String")
	if _, err := ofSpans.Copy(t.Context(), e.db, noon); err == nil || !strings.Contains(
		err.Error(), "spans_other has the column `Later` String, and spans has not") {
		t.Errorf("copying a column that the new table lacks: %v", err)
	}
	e.exec("ALTER TABLE spans_other DROP COLUMN Later")
	time.Sleep(time.Second) // the copy begins later than the mutation
	db := e.rewriting("session_timezone=Asia/Tokyo", settled.Replace)
	plan, err = ofSpans.Copy(t.Context(), db, noon)
	if err == nil {
		err = plan.Run(t.Context(), db, nil)
	}
	if err != nil || len(plan.Steps) != 2 ||
		!strings.Contains(plan.Steps[0].Does, "100 spans of '20261014'") {
		t.Errorf("copying a day: %+v, %v", plan.Steps, err)
	}
	e.is("101", "SELECT count() FROM spans_other")
	for _, operation := range []string{"copy", "undo"} {
		e.walks(ofSpans, operation, "copy", "copy") // the second time nothing is left
		e.complete(operation, all)
		e.is("0", "SELECT count() FROM spans_other")
		e.is("0", leftovers)
	}
}

// TestCopyWhileChanging: spans that are being updated or deleted are not moved, because that would
// end the mutation before it is done.
func TestCopyWhileChanging(t *testing.T) {
	e := newEngine(t)
	all := e.copying()
	for _, c := range []struct{ change, before string }{
		{"UPDATE StatusMessage = 'scrubbed'", "StatusMessage != 'scrubbed'"}, {"DELETE", "1"}} {
		where := " WHERE TraceId = '" + all[0].trace + "'"
		e.exec("SYSTEM STOP MERGES spans_other")
		e.exec("ALTER TABLE spans_other " + c.change + where + " SETTINGS mutations_sync = 0")
		if _, err := adopt(t.Context(), ofSpans, "copy", e.settled()); err == nil ||
			!strings.Contains(err.Error(), "spans are being changed") {
			t.Errorf("%s: %v", c.change, err)
		}
		e.exec("SYSTEM START MERGES spans_other")
		for e.one("SELECT countIf(NOT is_done) FROM system.mutations WHERE database = "+
			"currentDatabase() AND table = 'spans_other'") != "0" {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second) // the next copy begins later than the mutation
		e.walks(ofSpans, "copy")
		e.is("0", "SELECT count() FROM spans_all"+where+" AND "+c.before)
		e.is("0", leftovers)
		e.walks(ofSpans, "undo", "copy", "swap") // all is in the old table again
	}
}

// leftovers counts the tables of copies and drops.
const leftovers = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND " +
	"match(name, '_traceflake_(copy|copied)_.*_[a-z2-7]{8}$')"

// TestAdoptTwoShards adopts one shard after the other, each with its history, under a Distributed
// table that shows all spans before and after; in between it shows the spans in the shards' tables
// with the name.
func TestAdoptTwoShards(t *testing.T) {
	e := newEngine(t)
	all := few()
	for shard, spans := range [][]span{all[:150], all[150:]} {
		name := fmt.Sprint("spans_", 1+shard)
		e.run(collectorTable(name), nil)
		e.insert(name, spans)
	}
	e.exec("CREATE VIEW spans_local AS SELECT * FROM merge(currentDatabase(), '^spans_[12]$') " +
		"WHERE _table = 'spans_' || toString(shardNum())")
	e.exec("CREATE TABLE spans AS spans_1 ENGINE = Distributed(two, currentDatabase(), " +
		"spans_local)")
	for shard, left := range []string{"150", "150"} {
		for _, step := range []struct{ operation, shows string }{{"prepare", "300"}, {"swap", left},
			{"copy", "300"}} {
			e.walks(adoption{Table: fmt.Sprint("spans_", 1+shard)}, step.operation)
			e.is(step.shows, "SELECT count() FROM spans")
		}
	}
	if got := e.column("SELECT SpanId FROM spans ORDER BY SpanId"); !slices.Equal(got,
		sorted(ids(all))) {
		t.Errorf("%d spans, want %d, or others", len(got), len(all))
	}
}
