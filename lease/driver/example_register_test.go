package driver_test

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease/driver"
)

// nothingToClose makes a [driver.Store] of a store that holds nothing open.
type nothingToClose struct{ *driver.Memory }

func (nothingToClose) Close() error { return nil }

// The package of a store registers it in its init function. A service that
// imports the package opens the store by URL.
func ExampleRegister() {
	driver.Register("example", func(_ context.Context, _ string, o driver.Options) (driver.Store, error) {
		return nothingToClose{driver.NewMemory(driver.WithNodeRange(o.Nodes))}, nil
	})

	store, err := driver.Open(context.Background(), "example:", driver.AllNodes)
	if err != nil {
		panic(err)
	}
	blocks, err := store.List(context.Background())
	fmt.Println(len(blocks), err, store.Close())
	// Output: 0 <nil> <nil>
}

// An operator's program lists who holds which block. It imports the package of the store, here
// pgstore.
func ExampleOpen() {
	store, err := driver.Open(context.Background(), "postgres://host1,host2/fleet?target_session_attrs=read-write", driver.NodeRange{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	blocks, err := store.List(context.Background())
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.Node, b.Owner, b.End)
	}
}
