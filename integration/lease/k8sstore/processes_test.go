//go:build unix

package k8sstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Processes reach the API server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := kubernetes.ForTest(t)
	apply(t, s, namespaceObject)
	proxy := faults.HTTP(t, s.Client(kubernetes.Admin).Transport, s.URL())
	leasetest.Processes{
		URL: "k8s://" + namespace + "/processes?server=" + proxy.Endpoint(),
		IDs: faults.IDs(t),
		Outage: func(during func()) error {
			killed := s.Kill()
			during()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return errors.Join(killed, s.Run(), s.Wait(ctx))
		},
	}.Run(t)
	proxy.Check(t)
}
