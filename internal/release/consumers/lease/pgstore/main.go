// A program that leases nodes from a store by package pgstore.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/lease/driver"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/setup"
)

func main() {
	dir, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600); err != nil {
		panic(err)
	}
	ctx := context.Background()
	config := setup.Config{Store: os.Getenv("POSTGRES_URL"), SecretFile: secret, Nodes: driver.NodeRange{Nodes: 64}}
	ids, err := config.Open(ctx)
	if err != nil {
		panic(err)
	}
	id, _ := ids.NewIDs(ctx)
	if n := ids.Fallbacks(); n > 0 {
		panic(fmt.Sprint(n, " random IDs"))
	}
	fmt.Println(id, "was made with a lease,", ids.Shutdown(ctx))
}
