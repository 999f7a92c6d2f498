//go:build unix

package s3store_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Processes reach the server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := started(t)
	s3.Root.Setenv(t)
	proxy := faults.HTTP(t, http.DefaultTransport, s.Endpoint())
	leasetest.Processes{
		URL: "s3://" + bucket + "/processes?endpoint=" + proxy.Endpoint(),
		IDs: faults.IDs(t),
		Outage: func(during func()) error {
			if err := s.Kill(); err != nil {
				return err
			}
			during()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			return errors.Join(s.Run(), s.Wait(ctx))
		},
	}.Run(t)
	proxy.Check(t)
}
