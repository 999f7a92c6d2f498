//go:build unix

package pgstore

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func TestDriver(t *testing.T) {
	server := servers.PostgresForTest(t)
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		nodes driver.NodeRange
		size  uint32 // of the block granted
	}{
		{"the first use", few, few.BlockSize},
		{"the table's own block size", driver.NodeRange{}, few.BlockSize},
		{"a share of the nodes", driver.NodeRange{First: few.BlockSize, Nodes: 2 * few.BlockSize}, few.BlockSize},
	} {
		s, err := driver.Open(ctx, server.DSN(), c.nodes)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		g, err := s.Acquire(ctx, calls.Request(time.Now()))
		if err != nil || g.Nodes != c.size || g.Node-c.nodes.First >= cmp.Or(c.nodes.Nodes, few.Nodes) {
			t.Errorf("%s: got %+v, %v", c.name, g, err)
		}
		// The next one may have few nodes to choose from.
		if err := errors.Join(s.Release(ctx, g, lease.NewNonce(), g.Start), s.Close()); err != nil {
			t.Errorf("%s: release, close: %v", c.name, err)
		}
	}
	s, err := driver.Open(ctx, strings.Replace(server.DSN(), "postgres:", "postgresql:", 1), driver.AllNodes)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err = s.List(ctx)
	wantError(t, "another block size", err, lease.ErrBlockSize)
	small := mustOpen(t, connect(t, server.DSN()), driver.NodeRange{First: 8, Nodes: 8})
	wantError(t, "nodes that are no blocks of the store", use(small), lease.ErrInvalidRequest, "multiples")

	for _, url := range []string{"postgres://user:secret@host:port/", "postgres://user:secret@localhost/?sslmode=perhaps"} {
		_, err := driver.Open(ctx, url, driver.NodeRange{})
		wantError(t, "a bad address", err, nil)
	}
	_, err = driver.Open(ctx, server.DSN(), driver.NodeRange{First: 1, Nodes: 8, BlockSize: 8})
	wantError(t, "bad nodes", err, lease.ErrInvalidRequest)

	// An unreachable server does not delay Open.
	s, err = driver.Open(ctx, "postgres://user:secret@127.0.0.1:1/none", driver.NodeRange{})
	if err != nil {
		t.Fatalf("a dead server: %v", err)
	}
	defer func() { _ = s.Close() }()
	_, err = s.List(ctx)
	wantError(t, "a dead server", err, nil, "refused")
}
