package setup_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/setup"
)

// Shutdown ends within its two seconds although the store does not respond and the context is over:
// of a process that waits, of one that is renewing its lease, and of one that is connecting.
func TestShutdownWithoutAResponse(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t, "shutdown")
			c := fleet(t, b.url(b.address))
			servers.CreateStore(t, c.Store, codec(t, c))
			relay := pagestest.NewProxy(t, b.address)
			c.Store = b.url(relay.Address())
			renewing := c
			renewing.TTL = 2 * time.Second
			processes := map[string]*setup.IDs{"waiting": opens(t, c), "renewing": opens(t, renewing)}
			for name, ids := range processes {
				if err := ids.Ready(canceled()); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			relay.Stall()
			c.Strict = false // which waits for the store longer
			processes["connecting"] = opens(t, c)
			time.Sleep(500 * time.Millisecond)
			var all sync.WaitGroup
			for name, ids := range processes {
				all.Go(func() {
					began := time.Now()
					err := ids.Shutdown(canceled())
					if took := time.Since(began); took > 3*time.Second || name == "waiting" && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: Shutdown took %s, want at most 3 s: %v", name, took, err)
					}
				})
			}
			all.Wait()
		})
	}
}
