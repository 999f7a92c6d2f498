// A program that prints the SQL of package postgres.
package main

import (
	"fmt"

	"github.com/traceflake/traceflake/postgres"
)

func main() {
	statements, err := postgres.Statements("public")
	if err != nil || len(statements) == 0 {
		panic(err)
	}
	fmt.Println(len(statements), "statements")
}
