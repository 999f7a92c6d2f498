package k8sstore_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/k8sstore"
	"github.com/traceflake/traceflake/randflake"
)

// A service in a pod. All processes of the fleet share the secret.
func Example() {
	ctx := context.Background()
	store, err := driver.Open(ctx, "k8s:///orders", driver.NodeRange{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	codec, err := randflake.NewCodec([]byte("the fleet's code"))
	if err != nil {
		panic(err)
	}
	keeper, err := lease.Start(ctx, store, codec)
	if err != nil {
		panic(err)
	}
	defer keeper.Close(ctx)
	id, err := keeper.Next()
	fmt.Println(id, err)
}

// A program that has a client already: here the one of `kubectl proxy`.
func ExampleNew() {
	ctx := context.Background()
	store, err := k8sstore.New(http.DefaultClient, "http://127.0.0.1:8001", "shop", driver.NodeRange{}, k8sstore.WithName("orders"))
	if err != nil {
		panic(err)
	}
	blocks, err := store.List(ctx)
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.Node, b.Owner, b.GrantedUntil)
	}
}
