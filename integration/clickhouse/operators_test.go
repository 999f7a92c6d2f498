package clickhouse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// interleaved runs an operation of one operator, and another operator's before each of its
// statements in turn, each time on fresh tables after the first operations. Each of the spans that
// the first operations stored must be left once in all tables, whichever operator wins.
func interleaved(t *testing.T, first []string, one, other string) {
	e := newEngine(t)
	for at, met := 0, true; met; at++ {
		e.empty()
		e.run(collectorTable("spans"), nil)
		want := few()[:0]
		for i, operation := range append([]string{""}, first...) {
			if operation != "" {
				e.walks(ofSpans, operation)
			}
			e.insert("spans", few()[70*i:70*i+35])
			want = append(want, few()[70*i:70*i+35]...)
		}
		statements := 0
		// one of them may be refused
		_ = e.adopts(one, e.rewriting("", func(query string) string {
			if strings.HasPrefix(query, "CREATE OR REPLACE FUNCTION") {
				return query
			}
			if statements++; statements-1 == at {
				_ = e.adopts(other, e.settled())
			}
			return settled.Replace(query)
		}))
		met = statements > at
		found := e.column("SELECT SpanId FROM merge(currentDatabase(), " +
			"'^spans(_other|_dropped|_traceflake.*)?$') ORDER BY SpanId")
		if !slices.Equal(found, sorted(ids(want))) {
			t.Errorf("%s before statement %d of %s: %d spans are left of %d", other, at, one,
				len(found), len(want))
		}
		if one == "end" {
			continue
		}
		for _, operation := range []string{"prepare", "swap"} { // nobody is in the way
			if err := e.adopts(operation, e.settled()); err != nil {
				t.Errorf("%s before statement %d of %s, then %s: %v", other, at, one, operation,
					err)
			}
		}
	}
}

// TestTwoOperators: two operators at once lose no span, and leave nothing that one of them cannot
// continue.
func TestTwoOperators(t *testing.T) {
	interleaved(t, nil, "prepare", "prepare")
	interleaved(t, []string{"prepare"}, "swap", "undo")
	interleaved(t, []string{"prepare", "swap"}, "end", "undo")
	interleaved(t, []string{"prepare", "swap", "undo"}, "end", "swap")
}

// TestStaleSwap: a swap that was planned before another operator's does not undo it.
func TestStaleSwap(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.walks(ofSpans, "prepare")
	stale, err := ofSpans.Swap(t.Context(), e.db)
	if err != nil {
		t.Fatal(err)
	}
	e.walks(ofSpans, "swap")
	if err := stale.Run(t.Context(), e.db, nil); err == nil ||
		!strings.Contains(err.Error(), "the tables are exchanged already") {
		t.Errorf("the second swap: %v", err)
	}
	e.is("1", e.isNew())
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
}

// TestStatusDuringSwaps: a status that is read while others exchange the tables finds no fault, as
// if the name of the table with the older spans were somebody else's.
func TestStatusDuringSwaps(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.insert("spans", few())
	e.walks(ofSpans, "prepare")
	done := make(chan error, 1)
	go func() {
		for range 100 {
			if _, err := e.Query(t.Context(), "EXCHANGE TABLES spans AND spans_other"); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if running = false; err != nil {
				t.Error(err)
			}
		default:
			status, err := ofSpans.Status(t.Context(), e.db)
			if err != nil || status.Problem != nil {
				t.Fatal(err, status.Problem)
			}
		}
	}
}

// TestLookupLacksDays: status says which days' traces are missing from the lookup table, after a
// partition was attached, or the table was truncated, and the command that it names adds them.
func TestLookupLacksDays(t *testing.T) {
	for _, ours := range []bool{false, true} {
		t.Run(fmt.Sprint("ours ", ours), func(t *testing.T) {
			e := newEngine(t)
			repair := func() { e.walks(ofSpans, "prepare") }
			command := "`adopt prepare`"
			if ours {
				repair = func() { e.creates(clickhouse.Schema{Table: "spans"}) }
				command = "`create`"
				repair()
			} else {
				e.run(collectorTable("spans"), nil)
			}
			lacks := func(want string) {
				t.Helper()
				status, err := ofSpans.Status(t.Context(), e.db)
				if got := fmt.Sprint(status.Problem); err != nil || !strings.Contains(got, want) {
					t.Errorf("the status says %s, want %s (%v)", got, want, err)
				}
			}
			e.insert("spans", few())
			e.exec("CREATE TABLE backup AS spans")
			e.exec("INSERT INTO backup (Timestamp, TraceId) SELECT '2026-10-20 10:00:00', " +
				"lower(hex(sipHash128(number % 100))) FROM numbers(5000)")
			lacks("<nil>")
			e.exec("ALTER TABLE spans ATTACH PARTITION '2026-10-20' FROM backup")
			lacks("spans_trace_id_ts lacks traces of 2026-10-20, as after ATTACH PARTITION or " +
				"with a shorter TTL, so tools may not find them by ID: " + command + " adds them")
			repair()
			lacks("<nil>")
			e.is("100", "SELECT uniqExact(TraceId) FROM spans_trace_id_ts WHERE toDate(Start) = "+
				"'2026-10-20'")
			e.exec("TRUNCATE TABLE spans_trace_id_ts")
			all := "2026-10-14, 2026-10-15, 2026-10-20"
			if !ours { // it has a TTL, by which the first day may be gone
				all = "2026-10-15, 2026-10-20"
			}
			lacks("lacks traces of " + all)
		})
	}
}

// TestStatus: spans in the future, no TTL, and a Distributed table.
func TestStatus(t *testing.T) {
	e := newEngine(t)
	status := func(table string) (s clickhouse.Status, facts string) {
		t.Helper()
		s, err := adoption{Table: table}.Status(t.Context(), e.db)
		if err != nil {
			t.Fatal(err)
		}
		return s, fmt.Sprint(s.Tables[0].Facts)
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
	_, facts := status("spans")
	for _, want := range []string{"MiB; 1 of them begin in the future}", "days (2036-",
		"{ordered IDs 60.0 % of 10 spans of the newest partition}"} {
		if !strings.Contains(facts, want) {
			t.Errorf("%s lacks %s", facts, want)
		}
	}
	e.exec("ALTER TABLE spans REMOVE TTL")
	if _, facts = status("spans"); !strings.Contains(facts, "{last expires never}") {
		t.Errorf("without TTL: %s", facts)
	}
	e.exec("CREATE TABLE front AS spans ENGINE = Distributed(two, currentDatabase(), spans)")
	s, facts := status("front")
	if s.Problem != nil || !strings.Contains(fmt.Sprint(s.Obstacle), "--table spans") ||
		!strings.Contains(facts, "{spans 622; 2 of them begin in the future}") {
		t.Errorf("a Distributed table: %+v", s)
	}
}

// TestReplicatedDatabase: in a replicated database, a table that is not replicated would be on one
// server only.
func TestReplicatedDatabase(t *testing.T) {
	e := newEngine(t)
	db := e.rewriting("", func(query string) string {
		return strings.Replace(query, "engine AS database_engine",
			"'Replicated' AS database_engine", 1)
	})
	plan, err := clickhouse.Schema{}.Plan(t.Context(), db)
	if text := fmt.Sprint(plan.SQL()); err != nil ||
		strings.Count(text, "ENGINE = ReplicatedMergeTree\n") != 2 ||
		strings.Contains(text, "ENGINE = MergeTree") {
		t.Errorf("%v: %s", err, text)
	}
}
