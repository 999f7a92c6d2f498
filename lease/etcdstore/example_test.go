package etcdstore_test

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease/etcdstore"
)

// A service that has a client already. Pass the store to lease.Start.
func ExampleNew() {
	client, err := clientv3.New(
		clientv3.Config{Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379"}})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	store, err := etcdstore.New(client, "/fleet-a/leases/")
	if err != nil {
		panic(err)
	}
	defer store.Close()
}
