package boltstore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// before is a clock two days behind.
type before struct{}

func (before) Now() time.Time { return time.Now().Add(-48 * time.Hour) }

func TestConformance(t *testing.T) {
	leasetest.Run(t, leasetest.Harness{
		KnowsTime: true,
		New: func(tb testing.TB) leasetest.Open {
			path := filepath.Join(tb.TempDir(), "leases.db")
			return func(nodes driver.NodeRange) (lease.Store, error) {
				opts := []boltstore.Option{boltstore.WithBlockSize(int(nodes.BlockSize)), boltstore.WithMaxTTL(lease.MaxTTL)}
				if nodes.Nodes != driver.AllNodes.Nodes {
					opts = append(opts, boltstore.WithNodes(int(nodes.First), int(nodes.Nodes)))
					// A file new to its nodes waits before it grants. This one has had
					// them for two days.
					if _, err := boltstore.Open(path, append(opts, boltstore.WithClock(before{}))...); err != nil {
						return nil, err
					}
				}
				return boltstore.Open(path, opts...)
			}
		},
	})
}

func BenchmarkAcquire(b *testing.B) {
	leasetest.MeasureAcquire(b, leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Open {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return func(nodes driver.NodeRange) (lease.Store, error) {
			return boltstore.Open(path, boltstore.WithBlockSize(int(nodes.BlockSize)),
				boltstore.WithMaxTTL(lease.MaxTTL), boltstore.WithTimeout(5*time.Minute))
		}
	}})
}
