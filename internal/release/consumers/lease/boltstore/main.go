// A program that leases nodes from a file by package boltstore.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/setup"
)

func main() {
	dir, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	ids, err := setup.Config{Store: "bolt:" + filepath.Join(dir, "leases.db")}.Open(ctx)
	if err != nil {
		panic(err)
	}
	id, _ := ids.NewIDs(ctx)
	if n := ids.Fallbacks(); n > 0 {
		panic(fmt.Sprint(n, " random IDs"))
	}
	fmt.Println(id, "was made with a lease,", ids.Shutdown(ctx))
}
