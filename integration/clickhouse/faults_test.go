package clickhouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// interleaved runs an operation of one operator, and another operator's operation before each of
// its statements in turn, each time on fresh tables.
func interleaved(t *testing.T, first []string, one, other string, check func(e *engine, at int)) {
	for at, met := 0, true; met; at++ {
		e := newEngine(t)
		e.run(collectorTable("spans"), nil)
		e.insert("spans", few()[:100])
		e.walks(ofSpans, first...)
		e.insert("spans", few()[100:200])
		statements := 0
		// one of them may be refused
		_, _ = adopt(t.Context(), ofSpans, one, e.rewriting("", func(query string) string {
			if statements++; statements-1 == at {
				_, _ = adopt(t.Context(), ofSpans, other, e.settled())
			}
			return settled.Replace(query)
		}))
		met = statements > at
		check(e, at)
	}
}

// TestFinishBesideUndo: whichever of the two wins, the table that the Collector writes to is not
// dropped, and neither is the new one.
func TestFinishBesideUndo(t *testing.T) {
	interleaved(t, []string{"prepare", "swap"}, "drop-history", "undo", func(e *engine, at int) {
		tables := e.column("SELECT name FROM system.tables WHERE database = currentDatabase() " +
			"AND match(name, '^spans(_other|_dropped.*)?$') ORDER BY name")
		found := e.column("SELECT SpanId FROM merge(currentDatabase(), " +
			"'^spans(_other|_dropped.*)?$') ORDER BY SpanId")
		fresh := ids(few()[100:200])
		if slices.ContainsFunc(fresh,
			func(id string) bool { return !slices.Contains(found, id) }) ||
			!slices.Contains(tables, "spans") {
			t.Errorf("undo before statement %d of finish: %d spans are left, in %q", at, len(found),
				tables)
		}
		if e.isNew() == "0" && len(found) != 200 { // undo won
			t.Errorf("undo before statement %d of finish: %d spans are left, in %q", at, len(found),
				tables)
		}
		e.is("0", leftovers)
	})
}

// TestPrepareBesideCancel: whatever both leave behind, one of them completes it.
func TestPrepareBesideCancel(t *testing.T) {
	interleaved(t, nil, "prepare", "cancel", func(e *engine, at int) {
		for _, operation := range [][]string{{"cancel", "prepare"}, {"prepare", "cancel"}}[at%2] {
			if _, err := e.adopts(operation); err != nil {
				t.Errorf("cancel before statement %d of prepare: then %s: %v", at, operation, err)
			}
		}
		e.is("200", "SELECT count() FROM spans")
	})
}

// TestDropsNoNewSpans: spans that are stored after an operator has looked are not dropped.
func TestDropsNoNewSpans(t *testing.T) {
	for _, c := range []struct {
		operation        string
		first, meanwhile []string
	}{
		{"cancel", []string{"prepare"}, []string{"swap", "insert", "undo"}},
		{"finish", []string{"prepare", "swap", "empty"}, []string{"undo", "insert", "swap"}},
	} {
		e := newEngine(t)
		e.run(collectorTable("spans"), nil)
		do := func(steps []string) {
			for _, step := range steps {
				switch step {
				case "insert":
					e.insert("spans", few())
				case "empty": // as its TTL does
					e.exec("TRUNCATE TABLE spans_other")
				default:
					e.walks(ofSpans, step)
				}
			}
		}
		do(c.first)
		met := false
		db := e.rewriting("", func(query string) string {
			if strings.HasPrefix(query, "RENAME") && !met {
				met = true
				do(c.meanwhile)
			}
			return query
		})
		_, err := adopt(t.Context(), ofSpans, c.operation, db)
		if err == nil || !strings.Contains(err.Error(), "nothing was dropped") {
			t.Errorf("%s: %v", c.operation, err)
		}
		e.is("300", "SELECT count() FROM spans_other")
	}
}

// TestDropFails: if the old table cannot be dropped, or has detached parts, it gets its name back,
// and the views still exist.
func TestDropFails(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.insert("spans", few())
	e.must("prepare")
	e.must("swap")
	before := e.snapshot()
	_, err := adopt(t.Context(), ofSpans, "drop-history",
		e.rewriting("", func(query string) string {
			return strings.Replace(query, "max_table_size_to_drop = 0",
				"max_table_size_to_drop = 1", 1)
		}))
	if after := e.snapshot(); err == nil || after != before {
		t.Errorf("%v; changed from %s to %s", err, before, after)
	}
	e.exec("ALTER TABLE spans_other DETACH PARTITION ID '20261014'")
	// leaves empty parts
	e.exec("ALTER TABLE spans_other DELETE WHERE 1 SETTINGS mutations_sync = 1")
	before = e.snapshot()
	_, err = e.adopts("finish")
	if after := e.snapshot(); err == nil || !strings.Contains(err.Error(), "detached parts") ||
		after != before {
		t.Errorf("a table with detached parts: %v; changed from %s to %s", err, before, after)
	}
	e.exec("ALTER TABLE spans_other ATTACH PARTITION ID '20261014'")
	e.exec("ALTER TABLE spans_other DELETE WHERE 1 SETTINGS mutations_sync = 1")
	e.must("finish")
}

// TestRepair: a lookup finds a trace whose span was stored during an exchange, so that the
// materialized view did not get it.
func TestRepair(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.walks(ofSpans, "prepare")
	for _, operation := range []string{"swap", "undo"} {
		e.exec("INSERT INTO spans_other (Timestamp, TraceId) VALUES (now64(9), '" + operation +
			"')")
		e.walks(ofSpans, operation)
		e.is("1", "SELECT count() FROM spans_trace_id_ts WHERE TraceId = '"+operation+"'")
	}
	e.walks(ofSpans, "swap")
	e.exec("DROP VIEW spans_trace_id_ts_mv")
	e.exec("DROP TABLE spans_trace_id_ts")
	plan, err := e.adopts("undo")
	const fills = "there is no table spans_trace_id_ts: `adopt prepare` creates and fills it"
	if err != nil || !slices.Contains(plan.Notes, fills) || e.isNew() != "0" {
		t.Errorf("undo without the lookup table: %v, %q", err, plan.Notes)
	}
}

// TestColumns: the new table deletes the same columns' values, and swap refuses other TTLs and
// types. A default of one of the exporter's columns is not carried over, and prepare says so.
func TestColumns(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	const ttl = "toDateTime(Timestamp) + toIntervalDay(7)"
	e.exec("ALTER TABLE spans MODIFY COLUMN SpanAttributes TTL " + ttl)
	e.exec("ALTER TABLE spans MODIFY COLUMN `Events.Attributes` " +
		"Array(Map(LowCardinality(String), String)) TTL " + ttl + " FIRST") // in another order
	e.exec("ALTER TABLE spans MODIFY COLUMN SpanKind DEFAULT 'Internal'")
	plan, err := e.adopts("prepare")
	if err != nil || !slices.Contains(plan.Notes,
		"the column SpanKind of the exporter has no DEFAULT in the new table") {
		t.Errorf("notes: %q, %v", plan.Notes, err)
	}
	e.is("2", "SELECT countSubstrings(create_table_query, ' TTL "+ttl+
		"') FROM system.tables WHERE database = currentDatabase() AND name = 'spans_other'")
	e.exec("ALTER TABLE spans MODIFY COLUMN StatusMessage TTL " + ttl)
	if _, err := e.adopts("swap"); err == nil || !strings.Contains(err.Error(), "StatusMessage") {
		t.Errorf("a swap to a table with other TTLs of columns: %v", err)
	}
	e.exec("ALTER TABLE spans_other MODIFY COLUMN StatusMessage TTL " + ttl)
	e.exec("ALTER TABLE spans_other MODIFY COLUMN Duration Int64")
	if _, err := e.adopts("swap"); err == nil ||
		!strings.Contains(err.Error(), `column Duration has the type "Int64", not UInt64`) {
		t.Errorf("a swap to a table with another type: %v", err)
	}
	e.exec("ALTER TABLE spans_other MODIFY COLUMN Duration UInt64")
	for _, kind := range []string{"MATERIALIZED", "ALIAS"} {
		e.exec("ALTER TABLE spans ADD COLUMN " + kind + " String " + kind + " SpanId")
		if _, err := e.adopts("swap"); err == nil || !strings.Contains(err.Error(),
			"column "+kind+" exists in spans but not in spans_other") {
			t.Errorf("a swap to a table without a column that is %s: %v", kind, err)
		}
		e.exec("ALTER TABLE spans_other ADD COLUMN " + kind + " String " + kind + " SpanId")
	}
	e.exec("ALTER TABLE spans MODIFY COLUMN MATERIALIZED TTL " + ttl)
	if _, err := e.adopts("swap"); err == nil ||
		!strings.Contains(err.Error(), "the TTL of spans.MATERIALIZED is") {
		t.Errorf("a swap to a table without the TTL of an own column: %v", err)
	}
	e.exec("ALTER TABLE spans_other MODIFY COLUMN MATERIALIZED TTL " + ttl)
	// whatever a user's settings for JSON
	e.db = e.rewriting("output_format_json_named_tuples_as_objects=0", settled.Replace)
	e.must("swap")
}

// TestEmptyDefinition: a table whose definition a full disk left empty does not replace another
// table.
func TestEmptyDefinition(t *testing.T) {
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
		t.Skip("needs the engine's files")
	}
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.must("prepare")
	path := e.one("SELECT metadata_path FROM system.tables WHERE database = currentDatabase() " +
		"AND name = 'spans_other'")
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.one("SELECT path FROM system.disks WHERE name = 'default'"), path)
	}
	definition := read(path)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.adopts("swap"); err == nil ||
		!strings.Contains(err.Error(), "its definition is empty, as a full disk leaves it") {
		t.Errorf("a swap: %v", err)
	}
	if err := os.WriteFile(path, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	e.must("swap")
}

// TestStatus: spans in the future, no TTL, and a Distributed table.
func TestStatus(t *testing.T) {
	e := newEngine(t)
	status := func(table string) clickhouse.Status {
		t.Helper()
		s, err := adoption{Table: table}.Status(t.Context(), e.db)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	e.run(collectorTable("spans"), nil)
	e.insert("spans", few())
	e.exec("INSERT INTO spans (Timestamp, SpanId) VALUES ('2090-01-01 00:00:00', 'later')")
	var late []span // from 90 minutes before the times in their IDs to 90 minutes after them
	for minutes := -90; minutes <= 90; minutes += 20 {
		at := noon.Add(30 * time.Hour)
		late = append(late, span{trace: traceid.Min(at).String(), id: 1,
			start: at.Add(time.Duration(minutes) * time.Minute)})
	}
	e.insert("spans", late)
	if s := status("spans").Tables[0]; s.Future != 1 || s.Expires.Year() != 2036 ||
		s.Sampled != uint64(len(late)) || s.Ordered != 0.6 {
		t.Errorf("with a span in the future, and 4 of 10 that are outliers: %+v", s)
	}
	e.exec("ALTER TABLE spans REMOVE TTL")
	if s := status("spans").Tables[0]; !s.Expires.IsZero() {
		t.Errorf("without TTL: %+v", s)
	}
	e.exec("CREATE TABLE front AS spans ENGINE = Distributed(two, currentDatabase(), spans)")
	s := status("front")
	if s.Problem == nil || !strings.Contains(s.Problem.Error(), "--table spans") ||
		s.Tables[0].Rows != 622 || s.Tables[0].Future != 2 || s.Tables[0].Sampled != 622 {
		t.Errorf("a Distributed table: %+v", s)
	}
}

// TestReplicatedDatabase: in a replicated database, a table that is not replicated would be on one
// server only.
func TestReplicatedDatabase(t *testing.T) {
	e := newEngine(t)
	db := e.rewriting("", func(query string) string {
		return strings.Replace(query, "SELECT name, engine, version()",
			"SELECT name, 'Replicated' AS engine, version()", 1)
	})
	plan, err := clickhouse.Schema{}.Plan(t.Context(), db)
	if text := fmt.Sprint(plan.SQL()); err != nil ||
		strings.Count(text, "ENGINE = ReplicatedMergeTree\n") != 2 ||
		strings.Contains(text, "ENGINE = MergeTree") {
		t.Errorf("%v: %s", err, text)
	}
}
