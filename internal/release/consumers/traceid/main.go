// A program that reads trace IDs with package traceid.
package main

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

func main() {
	at := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	id, err := traceid.New(at, 5, 7)
	if err != nil || !traceid.Time(id).Equal(at) {
		panic(fmt.Sprint(id, err))
	}
	fmt.Println(id, "is of", traceid.Time(id).Format(time.RFC3339))
}
