package driver_test

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease/driver"
)

// The package of a store registers it in its init function. A service that
// imports the package opens the store by URL.
func ExampleRegister() {
	driver.Register("example", func(string) (driver.Store, error) { return driver.NewMemory(driver.AllNodes), nil })

	ctx := context.Background()
	store, err := driver.Open("example:")
	if err != nil {
		panic(err)
	}
	blocks, err := store.List(ctx)
	fmt.Println(len(blocks), err, store.Close(ctx))
	// Output: 0 <nil> <nil>
}

// An operator's program lists who holds which block. It imports the package of the store, here
// pgstore.
func ExampleOpen() {
	ctx := context.Background()
	store, err := driver.Open("postgres://host1,host2/fleet?target_session_attrs=read-write")
	if err != nil {
		panic(err)
	}
	defer store.Close(ctx)
	blocks, err := store.List(ctx)
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.Node, b.Owner, b.End)
	}
}
