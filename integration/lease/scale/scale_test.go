//go:build unix

// Package scale plays a large fleet on one store of each kind, for docs/scale.md.
package scale

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/lease/stores"
)

func TestMain(m *testing.M) { kubernetes.Main(m) }

// clients is how many processes call the store at once.
const clients = 16

// A fleet of TRACEFLAKETEST_SCALE processes, by default few, starts on a store with room for 32 768
// and renews its leases once. No two have a block in common, and the store renews faster than the
// fleet needs with the default TTL.
func TestFleet(t *testing.T) {
	n := 320
	if text := os.Getenv("TRACEFLAKETEST_SCALE"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, start := range map[string]func(*testing.T) (url string){
		"postgres": func(t *testing.T) string { return child.ForTest(t, servers.Postgres).DSN() },
		"etcd": func(t *testing.T) string {
			return "etcd://" + etcd.ForTest(t, 1).Endpoints()[0] + "/scale"
		},
		"kubernetes": func(t *testing.T) string {
			return "k8s://default/scale?server=" +
				kubernetes.Shared(t).Proxy(kubernetes.Token(kubernetes.Admin))
		},
		"s3": func(t *testing.T) string {
			s3.Root.Setenv(t)
			return "s3://" + s3.Bucket + "/scale?endpoint=" + child.ForTest(t, s3.Start).Endpoint()
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := processes.Store(start(t))
			d := storage.Create(t, lease.Description{BlockSize: 4})
			f := fleet{stores: make([]stores.Store, clients), grants: make([]lease.Grant, n)}
			for i := range f.stores {
				f.stores[i] = storage.Client(t)
			}
			started := f.each(t, func(s stores.Store, i int) error {
				d, err := s.Describe(t.Context())
				if err != nil {
					return err
				}
				r := calls.Request(time.Now())
				r.Store, r.TTL = d.ID, lease.DefaultTTL
				f.grants[i], err = s.Acquire(t.Context(), r)
				return err
			})
			seen := make(map[uint32]bool)
			for _, g := range f.grants {
				if g.Nodes != d.BlockSize || seen[g.Node] {
					t.Fatalf("granted twice, or too large: %+v", g)
				}
				seen[g.Node] = true
			}
			renewed := f.each(t, func(s stores.Store, i int) (err error) {
				r := calls.Request(time.Now())
				r.TTL = lease.DefaultTTL
				f.grants[i], err = s.Renew(t.Context(), f.grants[i], r)
				return err
			})
			if needed := float64(n) / (lease.DefaultTTL / 2).Seconds(); renewed < needed {
				t.Errorf("%.0f renewals a second, the fleet needs %.0f", renewed, needed)
			}
			t.Logf("%d processes: %.0f starts and %.0f renewals a second", n, started, renewed)
		})
	}
}

// fleet holds the leases of all processes, and the clients that they share.
type fleet struct {
	stores []stores.Store
	grants []lease.Grant
}

// each calls for every process, several at a time, and returns how many a second.
func (f *fleet) each(t *testing.T, call func(s stores.Store, i int) error) float64 {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for c, s := range f.stores {
		all.Go(func() {
			for i := c; i < len(f.grants) && !t.Failed(); i += len(f.stores) {
				if err := call(s, i); err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return float64(len(f.grants)) / time.Since(began).Seconds()
}
