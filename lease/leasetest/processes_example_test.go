//go:build unix

package leasetest_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease/leasetest"
)

// The body of a test that starts processes of its own program; TestMain must begin with Worker.
// The program imports the store's package, which registers the URL's scheme.
func ExampleProcesses() {
	var t *testing.T
	var server interface {
		Stop()
		Start() error
	}
	leasetest.Processes{
		URL: "mystore://127.0.0.1:1234",
		Outage: func(during func()) error {
			server.Stop()
			during()
			return server.Start()
		},
	}.Run(t)
}
