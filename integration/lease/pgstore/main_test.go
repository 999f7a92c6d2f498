package pgstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) {
	leasetest.Worker()
	os.Exit(run(m))
}

// ownServer is set if the tests may crash the server.
var ownServer bool

func run(m *testing.M) int {
	// One server for all tests, each with its own database.
	server, err := servers.Postgres(context.Background())
	switch {
	case errors.Is(err, servers.ErrNotInstalled): // for each test to skip or to fail
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		defer func() { _ = server.Close() }()
		ownServer = os.Getenv("TRACEFLAKE_POSTGRES_DSN") == ""
		if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
			panic(err)
		}
	}
	return m.Run()
}
