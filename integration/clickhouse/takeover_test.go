package clickhouse_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestCopyOperators: at each statement of a copy, a second operator takes over and is stopped at
// one of his own, and a third one copies, too; then the first one continues. The second one has
// looked before the statement, half the time while the tables were exchanged, and in one of three
// times they are exchanged before the third one looks. Each span is stored once, and nothing is
// left that a further copy does not end.
func TestCopyOperators(t *testing.T) {
	e := newEngine(t)
	all := e.copying()
	for at, met := 0, true; met; at++ {
		met = false
		statements := 0
		_, _ = adopt(t.Context(), ofSpans, "copy", e.rewriting("", func(query string) string {
			if looks(query) {
				return settled.Replace(query)
			}
			if statements++; statements != 1+at {
				return query
			}
			met = true
			if at%2 == 1 {
				e.exchange()
			}
			second, err := ofSpans.Copy(t.Context(), e.settled(), time.Time{})
			if err != nil {
				t.Error(err)
			}
			if at%2 == 1 {
				e.exchange()
			}
			if _, err = e.Query(t.Context(), query); err != nil {
				query = fails
			} else {
				query = "SELECT 1"
			}
			_ = second.Run(t.Context(), e.stopping(at*5%11), nil)
			status, err := ofSpans.Status(t.Context(), e.db)
			interrupted := strings.Contains(status.Next,
				"a copy is running or was interrupted: `adopt copy` takes it over")
			if err != nil || interrupted != (e.one(leftovers) != "0") {
				t.Error(err, status)
			}
			if at%3 == 0 {
				e.exchange()
			}
			_, _ = adopt(t.Context(), ofSpans, "copy", e.settled())
			return query
		}))
		e.copiesAll()
		e.complete(fmt.Sprint("at statement ", at), all)
		e.exchange() // all is in the other table again
	}
}

// exchange undoes the swap, or swaps.
func (e *engine) exchange() {
	e.t.Helper()
	e.walks(ofSpans, map[string]string{"1": "undo", "0": "swap"}[e.isNew()])
}

// fails is a statement that fails.
const fails = "SELECT throwIf(1)"

// looks reports whether a query is not a statement of a plan: it reads the server's tables, or its
// version when clickhouse-go connects.
func looks(query string) bool {
	return strings.Contains(query, "formatRow") || strings.Contains(query, "displayName()")
}

// stopping returns database/sql on which the statement with a number, and those after it, fail.
func (e *engine) stopping(at int) *sql.DB {
	e.t.Helper()
	return e.rewriting("", func(query string) string {
		if looks(query) {
			return settled.Replace(query)
		}
		if at--; at < 0 {
			return fails
		}
		return query
	})
}

// moved matches a MOVE PARTITION: the beginning of an ALTER of its source, and the partition.
var moved = regexp.MustCompile(`^(ALTER TABLE \S+) MOVE (PARTITION ID \S+)`)

// TestCopyLingers: the client of a copy is killed while a day moves, out of the old table, into the
// new one, or back, and the move continues on the server while another operator copies.
func TestCopyLingers(t *testing.T) {
	for _, c := range []struct {
		name  string
		after int // statements of an earlier copy, which was stopped
		move  int // which lingers
	}{{"out", 0, 1}, {"in", 0, 2}, {"back", 6, 1}} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t)
			all := e.copying()
			_, _ = adopt(t.Context(), ofSpans, "copy", e.stopping(c.after))
			ended := make(chan error, 1)
			moves := 0
			first := e.rewriting("", func(query string) string {
				if moved.MatchString(query) {
					if moves++; moves == c.move {
						e.lingers(query, ended)
					}
				}
				if moves >= c.move {
					return fails
				}
				return settled.Replace(query)
			})
			_, err := adopt(t.Context(), ofSpans, "copy", first)
			if moves == 0 {
				t.Fatal("nothing has moved:", err)
			}
			_, err = adopt(t.Context(), ofSpans, "copy", e.settled())
			t.Log("the other operator:", err)
			if err := <-ended; err != nil {
				t.Error("the move:", err)
			}
			e.copiesAll()
			e.complete("copied", all)
		})
	}
}

// lingers starts a move, sends its error once it ends, and returns when it waits for its source: a
// move waits for running mutations, and this one sleeps for three seconds.
func (e *engine) lingers(move string, ended chan<- error) {
	m := moved.FindStringSubmatch(move)
	e.exec(m[1] + " UPDATE StatusMessage = toString(sleepEachRow(0.029)) IN " + m[2] +
		" WHERE 1 SETTINGS mutations_sync = 0")
	e.eventually("SELECT count() FROM system.merges WHERE database = currentDatabase() AND " +
		"is_mutation AND elapsed > 0.2") // by then it sleeps
	e.runs(move, "query_kind = 'Alter'", ended)
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

// copiesAll copies until nothing is left to do. A copy stops while spans are being changed, and if
// they were within its first second.
func (e *engine) copiesAll() {
	e.t.Helper()
	var err error
	for range 30 {
		_, err = adopt(e.t.Context(), ofSpans, "copy", e.settled())
		if err == nil && e.one("SELECT count() FROM spans_other")+e.one(leftovers) == "00" {
			return
		}
		if _, attach, found := strings.Cut(fmt.Sprint(err), "not running, run "); found {
			attach, _, _ = strings.Cut(attach, ",")
			e.exec(attach)
		} else if strings.Contains(fmt.Sprint(err), "being changed") {
			time.Sleep(time.Second)
		}
	}
	e.t.Fatal("copies do not end:", err, e.exec("SELECT name, total_rows FROM system.tables "+
		"WHERE database = currentDatabase() AND name LIKE 'spans%'"))
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
	e.cannot("end", "it has spans")
	if err := <-ended; err != nil {
		t.Error("the insert:", err)
	}
	e.is("10", "SELECT count() FROM spans_dropped")
}
