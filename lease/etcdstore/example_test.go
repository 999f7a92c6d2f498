package etcdstore_test

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/randflake"
)

// A service that has a client already. All processes of the fleet share the
// secret.
func Example() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379"}})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	store, err := etcdstore.New(client, driver.NodeRange{}, etcdstore.WithPrefix("/fleet-a/leases/"))
	if err != nil {
		panic(err)
	}
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

// An operator's program lists who holds which block.
func Example_url() {
	ctx := context.Background()
	store, err := driver.Open(ctx, "etcds://etcd-1:2379,etcd-2:2379/fleet-a/leases?ca=/etc/etcd/ca.pem", driver.NodeRange{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	blocks, err := store.List(ctx)
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.Node, b.Owner, b.GrantedUntil)
	}
}
