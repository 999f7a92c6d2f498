//go:build unix

package k8sstore_test

import (
	"testing"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

// Processes reach the API server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	s := kubernetes.ForTest(t)
	apply(t, s, namespaceObject)
	proxy := faults.HTTP(t, s.Client(kubernetes.Admin).Transport, s.URL())
	processes.Run(t, "k8s://"+namespace+"/processes?server="+proxy.Endpoint(), processes.Outage(s))
	proxy.Check(t)
}
