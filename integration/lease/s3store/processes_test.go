//go:build unix

package s3store_test

import (
	"net/http"
	"testing"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// Processes reach the server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	s := started(t)
	s3.Root.Setenv(t)
	proxy := faults.HTTP(t, http.DefaultTransport, s.Endpoint())
	processes.Run(t, "s3://"+bucket+"/processes?endpoint="+proxy.Endpoint(), processes.Outage(s))
	proxy.Check(t)
}
