package lease_test

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// A service leases nodes and generates IDs with them. Its store is one of filestore, pgstore or
// etcdstore; this one is in memory. Package fleet does all of this as the environment configures
// it.
func ExampleStart() {
	codec, err := randflake.NewCodec([]byte("16 secret bytes!"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	store := memstore.New(lease.Description{First: 8, Nodes: 8, BlockSize: 8}, codec)
	secrets := lease.FixedSecrets(randflake.NewKeyring(codec))
	keeper, err := lease.Start(ctx, store, secrets)
	if err != nil {
		panic(err)
	}
	defer keeper.Close()
	if err := keeper.Ready(ctx); err != nil {
		panic(err)
	}
	id, err := keeper.Next()
	if err != nil {
		panic(err)
	}
	fmt.Println(keeper.Codec().Decode(id).Node)
	// Output: 8
}
