package fleet_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease/fleet"
)

// shutsDown checks that Shutdown ends although the store does not respond, within 5 s without a
// deadline and within 2 s if the context is over: of a process that waits, and of one that is
// renewing its lease. TestSilentServers has processes that are connecting.
func shutsDown(t *testing.T, b backend, c fleet.Config) {
	t.Helper()
	relay := network.NewProxy(t, b.address)
	c.Store = b.url(relay.Address(), "strict")
	renewing := c
	renewing.TTL = 2 * time.Second
	var ends []ending
	for _, e := range []ending{
		{most: 5 * time.Second, ctx: t.Context()}, {most: 2 * time.Second, ctx: canceled()},
	} {
		for name, c := range map[string]fleet.Config{"waiting": c, "renewing": renewing} {
			e.name, e.ids = name, opens(t, c)
			if err := e.ids.Ready(canceled()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ends = append(ends, e)
		}
	}
	relay.Stall()
	time.Sleep(500 * time.Millisecond)
	shutDown(t, ends)
}

// ending is a process that ends, and how long it may take.
type ending struct {
	name string
	ids  *fleet.IDs
	ctx  context.Context
	most time.Duration
}

// shutDown ends processes at once and checks how long each of them takes.
func shutDown(t *testing.T, ends []ending) {
	t.Helper()
	const loaded = time.Second // the delay of timers on a machine under load
	var all sync.WaitGroup
	for _, e := range ends {
		all.Go(func() {
			began := time.Now()
			err := e.ids.Shutdown(e.ctx)
			took := time.Since(began)
			t.Logf("%s: %s of %s", e.name, took.Round(time.Millisecond), e.most)
			if took > e.most+loaded || e.name == "waiting" &&
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Shutdown took %s, want at most %s: %v", e.name, took, e.most, err)
			}
		})
	}
	all.Wait()
}

// A server that accepts connections and never answers delays neither the start nor the end of a
// process for longer than any other server that hangs.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s3.Root.Setenv(t)
	at := silent.Addr().String()
	var mu sync.Mutex
	var ends []ending
	var all sync.WaitGroup
	for name, store := range map[string]string{
		"PostgreSQL":      "postgres://u:p@" + at + "/db",
		"etcd":            "etcd://" + at + "/fleet",
		"etcd with users": "etcd://u:p@" + at + "/fleet",
		"Kubernetes":      "k8s://default/fleet?server=http://" + at,
		"S3":              "s3://leases/fleet?region=r&endpoint=http://" + at,
	} {
		c := leased(t, store)
		c.Strict = false
		for ctx, most := range map[context.Context]time.Duration{
			t.Context(): 5 * time.Second, canceled(): 2 * time.Second,
		} {
			all.Go(func() {
				began := time.Now()
				ids, err := c.Open(t.Context())
				if took := time.Since(began); err != nil || took > 2*time.Second {
					t.Errorf("%s: it took %s to start: %v", name, took, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, ending{name, ids, ctx, most})
			})
		}
	}
	all.Wait()
	shutDown(t, ends)
}
