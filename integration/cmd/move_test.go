package cmd_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/setup"
)

// A fleet moves from a file to other stores, one after the other, and at last to etcd. Whatever
// their clocks show, no client gets a second of a node that another store granted.
func TestMoveBetweenStores(t *testing.T) {
	t.Run("PostgreSQL and S3", func(t *testing.T) {
		s3.Root.Setenv(t)
		server := s3.ForTest(t)
		server.Bucket(t, "leases")
		testMove(t, servers.PostgresForTest(t).DSN(), "s3://leases/moved?endpoint="+server.Endpoint())
	})
	t.Run("Kubernetes", func(t *testing.T) {
		server := kubernetes.ForTest(t)
		testMove(t, "k8s://default/moved?server="+server.Proxy(t, server.Token(kubernetes.Admin)))
	})
}

func testMove(t *testing.T, stores ...string) {
	const blocks = 4 // so that clients of etcd get every node that clients of the file had
	now := time.Now()
	acquire := func(url string, at time.Time) (lease.Grant, error) {
		t.Helper()
		store, err := driver.Open(t.Context(), url, driver.NodeRange{BlockSize: (1 << 17) / blocks})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		return store.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: at, TTL: 3 * time.Minute})
	}
	file := "bolt:" + filepath.Join(t.TempDir(), "leases.db")
	var last time.Time
	for _, ahead := range []time.Duration{-3 * time.Hour, -time.Minute, 0, 50 * time.Second} {
		g, err := acquire(file, now.Add(ahead))
		if err != nil {
			t.Fatal(err)
		}
		if g.End.After(last) {
			last = g.End
		}
	}
	refused := func(url string, ahead ...time.Duration) {
		t.Helper()
		for _, d := range ahead {
			if g, err := acquire(url, now.Add(d)); !errors.Is(err, lease.ErrNoFreeNode) {
				t.Errorf("%s grants %+v, %v to a client that is %s ahead", url, g, err, d)
			}
		}
	}
	path := build(t)
	move := func(from, to string) (begins time.Time) {
		t.Helper()
		p := program{path, []string{setup.StoreVar + "=" + from, setup.BlockSizeVar + "=32768"}}
		out := p.run(t, 0, "lease", "move", "--to", to)
		_, text, _ := strings.Cut(strings.TrimSpace(out), "grants leases from ")
		begins, err := time.Parse(time.RFC3339, strings.TrimSuffix(text, " on"))
		if err != nil || begins.Before(last) {
			t.Errorf("%s: the last lease of the file ends at %s; %v", out, last, err)
		}
		refused(from, -3*time.Hour, 0, 50*time.Second)
		return begins
	}
	cluster := "etcd://" + strings.TrimPrefix(etcd.ForTest(t, 1).Endpoints()[0], "http://")
	from, begins := file, last
	for _, to := range append(stores, cluster) {
		next := move(from, to)
		if next.Before(begins) {
			t.Errorf("%s begins at %s, the store before it was to begin at %s", to, next, begins)
		}
		refused(to, -3*time.Hour, 0, 50*time.Second)
		from, begins = to, next
	}
	refused(cluster, time.Minute, begins.Sub(now)-time.Second)
	for range blocks {
		if g, err := acquire(cluster, begins); err != nil || g.Start.Before(last) {
			t.Errorf("etcd grants %+v, %v; the file granted seconds until %s", g, err, last)
		}
	}
	refused(cluster, begins.Sub(now))
}
