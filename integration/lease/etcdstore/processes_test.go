//go:build unix

package etcdstore_test

import (
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/etcd"
)

// Processes reach three members through a bad network. The members are all
// killed.
func TestProcesses(t *testing.T) {
	cluster := etcd.ForTest(t, 3)
	var endpoints []string
	for _, address := range cluster.Endpoints() {
		endpoints = append(endpoints, "http://"+address)
	}
	proxy := faults.HTTP(t, faults.GRPC(), endpoints...)
	processes.Run(t, "etcd://"+strings.Join(proxy.Addresses, ","), processes.Outage(cluster))
	proxy.Check(t)
}
