// Package postgres has only a test: it compares contrib/postgres/functions.sql in a real PostgreSQL
// with Go's results for the same IDs.
package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/traceid"
)

// The results are Go's at the limits of the format and for random IDs and times, in any time zone.
// What is not a trace ID has no time. The statements of contrib/postgres/README.md use an index.
func TestFunctions(t *testing.T) {
	conn := child.ForTest(t, servers.Postgres).Connect(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%v in\n%s", err, sql)
		}
	}
	query := func(sql string, args ...any) []string {
		t.Helper()
		rows, _ := conn.Query(t.Context(), sql, args...) // CollectRows returns the error
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return all
	}
	exec(child.Read(t, "contrib/postgres/functions.sql"))
	exec("SET TimeZone = 'Europe/Berlin'")
	// same compares an expression about inputs v, as text.
	same := func(expression string, inputs, want []string) {
		t.Helper()
		for i, got := range query("SELECT coalesce(("+expression+")::text, 'NULL') "+
			"FROM unnest($1::text[]) WITH ORDINALITY AS i (v, n) ORDER BY n", inputs) {
			if got != want[i] {
				t.Errorf("%s of %q is %s, want %s", expression, inputs[i], got, want[i])
			}
		}
	}

	const top = 1<<64 - 1
	r := rand.New(rand.NewPCG(1, 2))
	var ids, millis, times, lows, highs, inside []string
	highHalves := []uint64{0, 1, 1<<23 - 1, 1 << 23, 1<<62 - 1, 1 << 63, 1<<63 - 1, top - 1<<23,
		top}
	for range 200 {
		highHalves = append(highHalves, r.Uint64())
	}
	for _, high := range highHalves {
		text := fmt.Sprintf("%016x%016x", high, r.Uint64())
		id, err := trace.TraceIDFromHex(text)
		if err != nil {
			t.Fatal(err)
		}
		at := traceid.Time(id)
		if ids = append(ids, text); at.IsZero() {
			millis = append(millis, "NULL")
			continue
		}
		millis = append(millis, strconv.FormatInt(at.UnixMilli(), 10))
		for _, d := range []time.Duration{-time.Microsecond, 0, 999 * time.Microsecond} {
			at := at.Add(d)
			times = append(times, at.Format("2006-01-02 15:04:05.999999Z07:00"))
			lows = append(lows, traceid.Min(at).String())
			highs = append(highs, traceid.Max(at).String())
			_, err := traceid.New(at, 1, 1)
			inside = append(inside, strconv.FormatBool(err == nil))
		}
	}
	for _, form := range []string{"v", "decode(v, 'hex')", "v::uuid"} {
		same("(1000 * extract(epoch FROM trace_id_time("+form+")))::bigint", ids, millis)
	}
	same("trace_id_min(v::timestamptz)", times, lows)
	same("trace_id_max(v::timestamptz)", times, highs)
	same("(trace_id_time(trace_id_at(v::timestamptz)) = "+
		"date_trunc('milliseconds', v::timestamptz)) IS TRUE", times, inside)
	never, end := time.Time{}, time.Unix(1<<40, 0)
	same("trace_id_min(v::timestamptz)", []string{"-infinity", "infinity"},
		[]string{traceid.Min(never).String(), traceid.Min(end).String()})
	same("trace_id_max(v::timestamptz)", []string{"-infinity", "infinity"},
		[]string{traceid.Max(never).String(), traceid.Max(end).String()})

	id := ids[len(ids)-1]
	for _, text := range []string{"", id[:31], id + "0", id + "\n", " " + id[1:],
		strings.ToUpper("abcdef") + id[6:], id[:31] + "g", strings.Repeat("３", 32)} {
		same("trace_id_time(v)", []string{text}, []string{"NULL"})
	}
	same("trace_id_time(decode(v, 'hex'))", []string{"", id[:30], id + "32"},
		[]string{"NULL", "NULL", "NULL"})
	same("(SELECT count(DISTINCT trace_id_at('2026-11-21')) FROM generate_series(1, 1000))",
		[]string{""}, []string{"1000"})

	examples := child.Blocks(child.Read(t, "contrib/postgres/README.md"), "sql")
	if len(examples) != 5 {
		t.Errorf("the page has %d statements, want 5", len(examples))
	}
	for i, example := range examples {
		if strings.HasPrefix(example, "SELECT") {
			plan := fmt.Sprint(query("EXPLAIN (ANALYZE, TIMING OFF) " + example))
			if !strings.Contains(plan, "Index Cond: ") || !strings.Contains(plan, "actual rows=3") {
				t.Errorf("%s: %s", example, plan)
			}
			continue
		}
		exec(example)
		if i == 0 { // a request every ten seconds of a day
			exec(`INSERT INTO requests SELECT trace_id_at('2026-11-20 00:00Z'::timestamptz +
				n * interval '10 s'), n::text FROM generate_series(0, 8639) AS n; ANALYZE requests`)
			exec("ALTER TABLE requests ADD created_at timestamptz")
		}
	}
}
