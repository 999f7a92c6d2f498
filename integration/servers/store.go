package servers

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// OpenStore opens the lease store at a URL until the test ends.
func OpenStore(tb testing.TB, url string) driver.Store {
	tb.Helper()
	s, err := driver.Open(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

// CreateStore creates the lease store at a URL for a secret, as `traceflake lease create` does, and
// opens it.
func CreateStore(tb testing.TB, url string, secret *randflake.Codec) driver.Store {
	tb.Helper()
	s := OpenStore(tb, url)
	d, err := driver.NewDescription(lease.Description{Created: time.Now()})
	if err == nil {
		d.Secrets = []string{lease.Fingerprint(secret, d.ID)}
		err = s.Create(tb.Context(), d)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
