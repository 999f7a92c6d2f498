//go:build unix

package boltstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/lease/rowtest"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func harness() rowtest.Harness {
	return rowtest.Harness{KnowsTime: true, New: func(tb testing.TB) rowtest.Storage {
		path := filepath.Join(tb.TempDir(), "leases.db")
		return rowtest.Storage{
			Open:   func() (driver.Store, error) { return boltstore.New(path) },
			Delete: func() error { return os.Remove(path) },
		}
	}}
}

func TestConformance(t *testing.T) { rowtest.Run(t, harness()) }

func TestMain(m *testing.M) {
	leasetest.Worker()
	os.Exit(m.Run())
}

// Processes of one host. While the store is unreachable another process locks the file.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	processes.Run(t, "bolt:"+path, func(during func()) error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 10 * time.Second})
		if err != nil {
			return err
		}
		during()
		return db.Close()
	})
}
