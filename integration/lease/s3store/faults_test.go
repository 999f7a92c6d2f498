//go:build unix

package s3store_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// What clients see while the server fails is linearizable, with those calls
// whose answer was lost carried out or not.
func TestFaults(t *testing.T) {
	server := started(t)
	proxy := faults.HTTP(t, http.DefaultTransport, server.Endpoint())
	for _, c := range []struct {
		name     string
		endpoint string
		clients  int // few, if many calls may or may not be carried out: the check tries them all
		fault    func() error
	}{
		{"killed", server.Endpoint(), 2, func() error {
			return calls.Outage(server)(func() { time.Sleep(100 * time.Millisecond) })
		}},
		{"stopped", server.Endpoint(), 3, func() error {
			if err := server.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			time.Sleep(1400 * time.Millisecond)
			return server.Signal(syscall.SIGCONT)
		}},
		{"a bad network", proxy.Endpoint(), 5, func() error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			leasetest.Faults(t, c.clients, harness(config(c.endpoint, s3.Root)).New, c.fault)
		})
	}
	proxy.Check(t)
}
