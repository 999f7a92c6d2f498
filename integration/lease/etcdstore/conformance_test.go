package etcdstore_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) {
	etcd.Main()
	leasetest.Worker()
	os.Exit(m.Run())
}

var prefixes atomic.Int64

// harness makes each storage a prefix of its own.
func harness(client *clientv3.Client) leasetest.Harness {
	return leasetest.Harness{New: func(testing.TB) leasetest.Storage {
		return storage(client, fmt.Sprintf("/storage/%d/", prefixes.Add(1)))
	}}
}

func storage(client *clientv3.Client, prefix string) leasetest.Storage {
	return leasetest.Storage{
		Open: func() (driver.Store, error) { return etcdstore.New(client, prefix) },
		Delete: func() error {
			_, err := client.Delete(context.Background(), prefix, clientv3.WithPrefix())
			return err
		},
	}
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, harness(etcd.ForTest(t, 1).Client))
}
