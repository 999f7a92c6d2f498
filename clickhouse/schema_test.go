package clickhouse_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

func TestBadSchemas(t *testing.T) {
	for message, s := range map[string]clickhouse.Schema{
		`database "a.b"`:         {Database: "a.b"},
		"database \"a`b\"":       {Database: "a`b"},
		`table "it's"`:           {Table: "it's"},
		`table "spans; DROP"`:    {Table: "spans; DROP"},
		`table "öl"`:             {Table: "öl"},
		"table \"" + long + "\"": {Table: long},
		`cluster "{a"`:           {Cluster: "{a"},
		`cluster "a' b"`:         {Cluster: "a' b"},
		"TTL -1h":                {TTL: -time.Hour},
	} {
		all := map[string]func() error{
			"Statements": func() error { _, err := s.Statements(); return err },
			"Trace":      func() error { _, err := s.Trace([16]byte{1}); return err },
			"Newest": func() error {
				_,
					err := s.Newest(day, day.Add(1), [16]byte{}, 1)
				return err
			},
			"Spans": func() error { _, err := s.Spans(day, day.Add(1)); return err },
			"Search": func() error {
				_,
					err := s.Search(clickhouse.Search{From: day, To: day.Add(1)})
				return err
			},
			"Create": func() error { return s.Create(t.Context(), nil) },
		}
		for name, call := range all {
			if err := call(); err == nil ||
				!strings.HasPrefix(err.Error(), "clickhouse: "+message) {
				t.Errorf("%s of %+v: %v, want %s", name, s, err, message)
			}
		}
	}
}

var (
	long = strings.Repeat("x", 129)
	day  = time.Date(2026, 10, 15, 0, 0, 0, 0, time.UTC)
)

func TestParameters(t *testing.T) {
	q, err := clickhouse.Schema{}.Search(
		clickhouse.Search{From: day, To: day.Add(1), Service: "it's"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(q.SQL, "it's") {
		t.Error("the value is in the text")
	}
	if last := len(q.Params) - 1; len(q.Args()) != len(q.Params) ||
		q.Args()[last] != sql.Named(q.Params[last].Name, q.Params[last].Value) {
		t.Errorf("%d arguments of %d parameters, the last %v", len(q.Args()), len(q.Params),
			q.Args()[last])
	}
}

func second(_ clickhouse.Query, err error) error { return err }

func ExampleSchema_Trace() {
	q, err := clickhouse.Schema{Database: "otel"}.Trace([16]byte{0x19, 0x50, 15: 1})
	if err != nil {
		panic(err)
	}
	// With database/sql: rows, err := db.QueryContext(ctx, q.SQL, q.Args()...)
	for _, p := range q.Params {
		fmt.Println(p.Name, p.Value)
	}
	// Output:
	// ids ['19500000000000000000000000000001']
}
