// A program that prints the SQL of package clickhouse.
package main

import (
	"fmt"

	"github.com/traceflake/traceflake/clickhouse"
)

func main() {
	statements, err := clickhouse.Schema{}.Statements()
	if err != nil || len(statements) == 0 {
		panic(err)
	}
	fmt.Println(len(statements), "statements,", len(clickhouse.Functions()), "bytes of functions")
}
