//go:build unix

package calls

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/leasetest"
)

// Server is a server that can be started again with the data it had.
type Server interface {
	Kill() error
	Run() error
	Wait(context.Context) error
}

// Outage returns a function that kills a server, calls during, and starts the server again.
func Outage(s Server) func(during func()) error {
	return func(during func()) error {
		killed := s.Kill()
		during()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(killed, s.Run(), s.Wait(ctx))
	}
}

// Processes runs processes on the store at a URL for one round, or until they have made
// TRACEFLAKE_SOAK_IDS IDs.
func Processes(t *testing.T, url string, outage func(during func()) error) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := leasetest.Processes{URL: url, Outage: outage}
	if text := os.Getenv("TRACEFLAKE_SOAK_IDS"); text != "" {
		var err error
		if p.IDs, err = strconv.ParseInt(text, 10, 64); err != nil || p.IDs < 1 {
			t.Fatalf("TRACEFLAKE_SOAK_IDS is %q, want a number of IDs", text)
		}
	}
	p.Run(t)
}
