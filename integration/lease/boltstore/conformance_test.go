package boltstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func harness(opts ...boltstore.Option) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Storage {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return leasetest.Storage{
			Open:   func() (driver.Store, error) { return boltstore.New(path, opts...) },
			Delete: func() error { return os.Remove(path) },
		}
	}}
}

func TestConformance(t *testing.T) { leasetest.Run(t, harness()) }

func BenchmarkAcquire(b *testing.B) {
	crowd.Measure(b, harness(boltstore.WithTimeout(5*time.Minute)), nil)
}
