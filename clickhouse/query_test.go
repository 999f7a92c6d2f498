package clickhouse_test

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
)

// TestQueries pins the text of the queries and their parameters.
func TestQueries(t *testing.T) {
	var text strings.Builder
	show := func(q clickhouse.Query, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n-- %q\n\n", q.SQL, q.Params)
	}
	for _, s := range []clickhouse.Schema{{}, {Layout: clickhouse.Overlay, Slack: time.Minute}, {Database: "otel", Table: "spans", Cluster: "main"}} {
		fmt.Fprintf(&text, "-- %+v\n\n", s)
		show(s.Trace([16]byte{0x19, 15: 1}))
		show(clickhouse.Traces(s, []trace.TraceID{{0x19, 15: 1}, {0x19, 15: 2}}))
		show(clickhouse.TracesEverywhere(s, []trace.TraceID{{0x19, 15: 1}}))
		show(s.Newest(day, day.Add(time.Hour), [16]byte{}, 100))
		show(s.Newest(day, day.Add(time.Hour), [16]byte{0x19}, 100))
		show(s.SpansOfTraces(day, day.Add(time.Hour)))
		show(s.Spans(day, day.Add(time.Hour)))
		show(s.Search(clickhouse.Search{From: day, To: day.Add(time.Hour), Service: "orders", Name: "GET /", MinDuration: time.Second, MaxDuration: time.Minute, Errors: true}))
		show(s.Search(clickhouse.Search{From: day, To: day.Add(time.Hour), Limit: 5,
			Attributes: map[string]string{"b": "it's", "a": "x"}, ResourceAttributes: map[string]string{"host.name": "h"}}))
	}
	golden(t, "queries.sql", text.String())
}

func TestParameters(t *testing.T) {
	q, err := clickhouse.Schema{}.Search(clickhouse.Search{From: day, To: day.Add(1), Service: "a\tb\\c\n'\x00"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(q.SQL, "a\tb") {
		t.Error("the value is in the text")
	}
	if got := q.Values().Get("param_service"); got != `a\tb\\c\n'\0` {
		t.Errorf("over HTTP %q", got)
	}
	if last := len(q.Params) - 1; len(q.Args()) != len(q.Params) || q.Args()[last] != sql.Named(q.Params[last].Name, q.Params[last].Value) {
		t.Errorf("%d arguments of %d parameters, the last %v", len(q.Args()), len(q.Params), q.Args()[last])
	}
}

func second(_ clickhouse.Query, err error) error { return err }

func TestSampleCondition(t *testing.T) {
	for ratio, want := range map[float64]string{-1: "0", 0: "0", 0.5: "bitShiftRight(traceIDLow(TraceId), 1) < 4611686018427387904", 1: "1", 3: "1", math.NaN(): "0"} {
		if got := clickhouse.SampleCondition(ratio); got != want {
			t.Errorf("%v: %s", ratio, got)
		}
	}
}

func ExampleSchema_Trace() {
	q, err := clickhouse.Schema{Database: "otel"}.Trace([16]byte{0x19, 0x50, 15: 1})
	if err != nil {
		panic(err)
	}
	// With database/sql: rows, err := db.QueryContext(ctx, q.SQL, q.Args()...)
	fmt.Println(q.Params)
	// Output: [{id 19500000000000000000000000000001}]
}
