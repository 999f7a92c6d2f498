//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Processes reach three members through a bad network. The members are all
// killed.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const members = 3
	cluster := etcd.ForTest(t, members)
	var endpoints []string
	for _, address := range cluster.Endpoints() {
		endpoints = append(endpoints, "http://"+address)
	}
	proxy := faults.HTTP(t, faults.GRPC(), endpoints...)
	leasetest.Processes{
		URL: "etcd://" + strings.Join(proxy.Addresses(), ","),
		IDs: faults.IDs(t),
		Outage: func(during func()) error {
			var errs []error
			for i := range members {
				errs = append(errs, cluster.Kill(i))
			}
			during()
			for i := range members {
				errs = append(errs, cluster.Run(i))
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return errors.Join(append(errs, cluster.Wait(ctx))...)
		},
	}.Run(t)
	proxy.Check(t)
}
