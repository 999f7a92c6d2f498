package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/boltstore"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

func TestBolt(t *testing.T) {
	leasetest.Run(t, leasetest.Harness{
		KnowsTime: true,
		New: func(tb testing.TB) leasetest.Open {
			path := filepath.Join(tb.TempDir(), "leases.db")
			return func(nodes lease.NodeRange) (lease.Store, error) {
				opts := []boltstore.Option{boltstore.WithBlockSize(int(nodes.BlockSize)), boltstore.WithMaxTTL(lease.MaxTTL)}
				if nodes.Nodes != lease.AllNodes.Nodes {
					opts = append(opts, boltstore.WithNodes(int(nodes.First), int(nodes.Nodes)))
					// A file new to its nodes waits before it grants. This one has had
					// them for two days.
					before := func() time.Time { return time.Now().Add(-48 * time.Hour) }
					if _, err := boltstore.Open(path, append(opts, boltstore.WithClock(before))...); err != nil {
						return nil, err
					}
				}
				return boltstore.Open(path, opts...)
			}
		},
	})
}
