package pgstore

import (
	"context"
	"os"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// ownServer is set if the tests may crash the server.
var ownServer bool

// TestMain starts one server for all tests; each test has its own database.
func TestMain(m *testing.M) {
	leasetest.Worker()
	ownServer = os.Getenv("TRACEFLAKE_POSTGRES_DSN") == ""
	server, err := servers.Postgres(context.Background())
	if err != nil { // each test skips or fails
		os.Exit(m.Run())
	}
	if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = server.Close()
	os.Exit(code)
}
