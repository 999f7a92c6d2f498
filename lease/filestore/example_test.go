package filestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// The processes of one host share a directory, and through its secret the space of
// IDs.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "traceflake")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "leases")
	store, err := filestore.New(dir)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	ctx := context.Background()
	secrets, err := filestore.Secret(ctx, dir)
	if err == nil {
		err = stores.Ensure(ctx, store, secrets.Codec())
	}
	if err != nil {
		panic(err)
	}
	keeper, err := lease.Start(ctx, store, lease.FixedSecrets(secrets))
	if err != nil {
		panic(err)
	}
	defer keeper.Close()
	if err := keeper.Ready(ctx); err != nil {
		panic(err)
	}
	id, err := keeper.Next()
	node := keeper.Codec().Decode(id).Node
	fmt.Println("generated with a lease:", err == nil && node < randflake.MaxNode)
	// Output: generated with a lease: true
}
