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

func harness(opts ...boltstore.Option) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Open {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return func(nodes driver.NodeRange) (lease.Store, error) {
			return boltstore.Open(path, driver.Options{Nodes: nodes, LongestTTL: lease.MaxTTL, Secret: driver.OwnSecret}, opts...)
		}
	}}
}

func TestConformance(t *testing.T) { leasetest.Run(t, harness()) }

func BenchmarkAcquire(b *testing.B) {
	crowd.Measure(b, harness(boltstore.WithTimeout(5*time.Minute)), nil)
}
