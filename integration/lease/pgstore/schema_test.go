package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// A store is opened without naming its block size again; with a share of its
// nodes, too.
func TestTheStoresOwnBlockSize(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx, pool := context.Background(), connect(t, server.DSN())
	first := mustOpen(t, pool, driver.NodeRange{Nodes: 1 << 15, BlockSize: 1 << 15})
	if err := use(first); err != nil {
		t.Fatal(err)
	}
	share := mustOpen(t, pool, driver.NodeRange{First: 1 << 15, Nodes: 1 << 16})
	again, err := driver.Open(ctx, server.DSN(), driver.NodeRange{First: 1 << 15, Nodes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	for _, s := range []lease.Store{share, again} {
		g, err := s.Acquire(ctx, lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute})
		if err != nil || g.Nodes != 1<<15 || g.Node < 1<<15 || g.Node >= 3<<15 {
			t.Errorf("got %+v, %v", g, err)
		}
	}
	small := mustOpen(t, pool, driver.NodeRange{First: 8, Nodes: 8})
	wantError(t, "nodes that are no blocks of the store", use(small), lease.ErrInvalidRequest, "multiples")
}
