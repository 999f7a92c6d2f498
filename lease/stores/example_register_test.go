package stores_test

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

func init() {
	stores.Register("example",
		func(string) (stores.Store, error) { return memstore.New(lease.Description{}, nil), nil })
}

// The package of a store registers it in its init function. A service that
// imports the package opens the store by URL.
func ExampleRegister() {
	ctx := context.Background()
	store, err := stores.Open("example:")
	if err != nil {
		panic(err)
	}
	blocks, err := store.List(ctx)
	fmt.Println(len(blocks), err, store.Close())
	// Output: 0 <nil> <nil>
}
