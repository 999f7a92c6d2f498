package clickhouse_test

import (
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
		`projection "wide"`:      {Projection: "wide"},
	} {
		all := map[string]func() error{
			"Statements": func() error { _, err := s.Statements(); return err },
			"Trace":      func() error { _, err := s.Trace([16]byte{1}); return err },
			"Create":     func() error { return s.Create(t.Context(), nil) },
		}
		for name, call := range all {
			if err := call(); err == nil ||
				!strings.HasPrefix(err.Error(), "clickhouse: "+message) {
				t.Errorf("%s of %+v: %v, want %s", name, s, err, message)
			}
		}
	}
}

var long = strings.Repeat("x", 129)

// The direction of a new table's key depends on the version alone.
func TestNewestFirst(t *testing.T) {
	for version, newest := range map[string]bool{"": false, "26.7.2.1": false, "26.7.2.14": false,
		"26.7.2.15": true, "26.7.10.1": true, "26.8.1.1": true, "27.1": true, "26.6.2.122": false,
		"9.12.1": false} {
		statements, err := clickhouse.Schema{Version: version}.Statements()
		if err != nil || newest != strings.Contains(strings.Join(statements, "\n"),
			"\nORDER BY (toStartOfFiveMinutes(Timestamp) DESC, TraceId, Timestamp)") {
			t.Errorf("%q: newest first is %t, want %t (%v)", version, !newest, newest, err)
		}
	}
}

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
