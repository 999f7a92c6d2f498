package clickhouse_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

func TestParameters(t *testing.T) {
	q, err := clickhouse.Schema{}.Search(clickhouse.Search{From: day, To: day.Add(1), Service: "it's"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(q.SQL, "it's") {
		t.Error("the value is in the text")
	}
	if last := len(q.Params) - 1; len(q.Args()) != len(q.Params) || q.Args()[last] != sql.Named(q.Params[last].Name, q.Params[last].Value) {
		t.Errorf("%d arguments of %d parameters, the last %v", len(q.Args()), len(q.Params), q.Args()[last])
	}
}

func second(_ clickhouse.Query, err error) error { return err }

func ExampleSchema_Trace() {
	q, err := clickhouse.Schema{Database: "otel"}.Trace([16]byte{0x19, 0x50, 15: 1})
	if err != nil {
		panic(err)
	}
	// With database/sql: rows, err := db.QueryContext(ctx, q.SQL, q.Args()...)
	fmt.Println(q.Params)
	// Output: [{ids ['19500000000000000000000000000001']}]
}
