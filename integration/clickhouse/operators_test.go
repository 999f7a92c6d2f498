package clickhouse_test

import (
	"slices"
	"strings"
	"testing"
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
