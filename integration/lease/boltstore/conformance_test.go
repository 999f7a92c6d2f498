package boltstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func harness() leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(tb testing.TB) leasetest.Storage {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return leasetest.Storage{
			Open:   func() (driver.Store, error) { return boltstore.New(path) },
			Delete: func() error { return os.Remove(path) },
		}
	}}
}

func TestConformance(t *testing.T) { leasetest.Run(t, harness()) }
