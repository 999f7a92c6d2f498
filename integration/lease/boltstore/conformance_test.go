package boltstore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestConformance(t *testing.T) {
	leasetest.Run(t, leasetest.Harness{
		KnowsTime: true,
		New: func(tb testing.TB) leasetest.Open {
			path := filepath.Join(tb.TempDir(), "leases.db")
			return func(nodes driver.NodeRange) (lease.Store, error) {
				return boltstore.Open(path, nodes, boltstore.WithMaxTTL(lease.MaxTTL), boltstore.WithOwnSecret())
			}
		},
	})
}

func BenchmarkAcquire(b *testing.B) {
	crowd.Measure(b, leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Open {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return func(nodes driver.NodeRange) (lease.Store, error) {
			return boltstore.Open(path, nodes, boltstore.WithOwnSecret(),
				boltstore.WithMaxTTL(lease.MaxTTL), boltstore.WithTimeout(5*time.Minute))
		}
	}})
}
