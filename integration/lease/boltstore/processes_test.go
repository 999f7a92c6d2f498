//go:build unix

package boltstore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// faulty:PATH is bolt:PATH with faults.
func init() {
	driver.Register("faulty", func(ctx context.Context, url string, nodes driver.NodeRange) (driver.Store, error) {
		path := strings.TrimPrefix(url, "faulty:")
		s, err := driver.Open(ctx, "bolt:"+path, nodes)
		if err != nil {
			return nil, err
		}
		return faults.NewStore(s, path+".fates")
	})
}

func TestMain(m *testing.M) {
	leasetest.Worker()
	os.Exit(m.Run())
}

// Processes of one host whose calls have faults. While the store is unreachable
// another process locks the file.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path := filepath.Join(t.TempDir(), "leases.db")
	leasetest.Processes{
		URL: "faulty:" + path,
		IDs: faults.IDs(t),
		Outage: func(during func()) error {
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 10 * time.Second})
			if err != nil {
				return err
			}
			during()
			return db.Close()
		},
	}.Run(t)
	var counts faults.Counts
	if err := counts.Add(path + ".fates"); err != nil {
		t.Fatal(err)
	}
	counts.Check(t)
}
