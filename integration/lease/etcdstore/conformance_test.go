package etcdstore_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
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
	return leasetest.Harness{New: func(testing.TB) leasetest.Open {
		prefix := fmt.Sprintf("/storage/%d/", prefixes.Add(1))
		return func(nodes driver.NodeRange) (lease.Store, error) { return open(client, prefix, nodes) }
	}}
}

func open(client clientv3.KV, prefix string, nodes driver.NodeRange) (*pages.Store, error) {
	return etcdstore.New(client, nodes, etcdstore.WithPrefix(prefix))
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, harness(etcd.ForTest(t, 1).ClientForTest(t)))
}

func BenchmarkAcquire(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("%d members", members), func(b *testing.B) {
			crowd.Measure(b, harness(etcd.ForTest(b, members).ClientForTest(b)), nil)
		})
	}
}
