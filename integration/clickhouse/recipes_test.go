package clickhouse_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// recipe returns the statements of the page after a heading, for a table.
func recipe(heading, table string) []string {
	q, err := documented(heading, table)
	if err != nil {
		panic(err)
	}
	return strings.Split(q.SQL, ";\n")
}

// ends runs the statements of the page that end the adoption of a table.
func (e *engine) ends(table string, db *sql.DB) error {
	for _, statement := range recipe("### Finish or cancel", table) {
		if _, err := db.ExecContext(e.t.Context(), statement); err != nil {
			return err
		}
	}
	return nil
}

// rollup creates a materialized view of a user.
func (e *engine) rollup() {
	e.t.Helper()
	e.exec("CREATE TABLE rollup (SpanId String) ENGINE = MergeTree ORDER BY SpanId")
	e.exec("CREATE MATERIALIZED VIEW rollup_mv TO rollup AS SELECT SpanId FROM spans")
}

// TestMoveADay moves days by the statements of the page, also of a table with partitions of months,
// and after undo into it: each span is stored once, with all of its columns, and materialized views
// do not get it again. Before a statement that fails, spans are in one of the tables.
func TestMoveADay(t *testing.T) {
	for _, month := range []bool{false, true} {
		t.Run(fmt.Sprint("months ", month), func(t *testing.T) {
			e := newEngine(t)
			create := collectorTable("spans")
			if month {
				create[0] = strings.Replace(create[0], "toDate(Timestamp)\n",
					"toYYYYMM(Timestamp)\n", 1)
			}
			e.run(create, nil)
			e.rollup()
			all := few()
			e.insert("spans", all[:200])
			e.walks(ofSpans, "prepare", "swap")
			e.insert("spans", all[200:])
			const rows = "SELECT cityHash64(* EXCEPT (_part, _part_offset)) FROM spans_all " +
				"ORDER BY 1"
			before := e.column(rows)
			move := func(day string, partition string) {
				t.Helper()
				for _, statement := range recipe("### Move a day", "spans") {
					if strings.Contains(statement, "MOVE PARTITION") {
						statement = strings.Replace(statement, "'2026-11-20'", partition, 1)
					}
					e.exec(strings.ReplaceAll(statement, "2026-11-20", day))
					if moved := strings.HasPrefix(statement, "ALTER"); !moved &&
						!slices.Equal(e.column(rows), before) {
						t.Errorf("after %s the tables have other spans", statement)
					}
				}
				e.is("0", "SELECT count() FROM spans_other WHERE toDate(Timestamp) = '"+day+"'")
			}
			move("2026-10-14", "'2026-10-14'")
			e.is("100", "SELECT count() FROM spans_other")
			move("2026-10-15", "'2026-10-15'")
			e.is("300", "SELECT count() FROM spans")
			e.walks(ofSpans, "undo")
			partition := "'2026-10-14'"
			if month {
				partition = "202610"
			}
			move("2026-10-14", partition)
			e.is("150", "SELECT count() FROM spans")
			if got := e.column("SELECT SpanId FROM rollup ORDER BY SpanId"); !slices.Equal(got,
				ids(all)) {
				t.Errorf("a materialized view got %d spans, want %d", len(got), len(all))
			}
		})
	}
}

// runs starts a statement, sends its error once it ends, and returns when a condition on its row of
// system.processes holds.
func (e *engine) runs(statement, condition string, ended chan<- error) {
	go func() {
		_, err := e.Query(e.t.Context(), statement)
		ended <- err
	}()
	e.eventually("SELECT count() FROM system.processes WHERE " + condition)
}

// eventually waits until a count is not 0, for ten seconds at most. A machine that is so slow that
// it misses the moment only makes the test easier to pass.
func (e *engine) eventually(count string) {
	e.t.Helper()
	for range 1000 {
		if e.one(count) != "0" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	e.t.Log("still 0:", count)
}

// TestEndLingers: an insert that began before a swap continues on the server while the adoption is
// finished. What it stores is not dropped.
func TestEndLingers(t *testing.T) {
	e := newEngine(t)
	e.run(collectorTable("spans"), nil)
	e.walks(ofSpans, "prepare")
	ended := make(chan error, 1)
	e.runs("INSERT INTO spans (Timestamp, SpanId) SELECT now64(9), "+
		"toString(number + sleepEachRow(0.29)) FROM numbers(10)",
		"query_kind = 'Insert' AND read_rows > 0", ended) // it has found its table
	e.walks(ofSpans, "swap")
	if err := e.ends("spans", e.db); err == nil || !strings.Contains(err.Error(), "it has spans") {
		t.Error("the end:", err)
	}
	if err := <-ended; err != nil {
		t.Error("the insert:", err)
	}
	e.is("10", "SELECT count() FROM spans_dropped")
}
