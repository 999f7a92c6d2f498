package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// What clients see while members fail is linearizable, with those calls whose
// answer was lost carried out or not.
func TestFaults(t *testing.T) {
	const members = 3
	cluster := etcd.ForTest(t, members)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	leader := func() int {
		t.Helper()
		i, err := cluster.Leader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	sleep := func() error { time.Sleep(700 * time.Millisecond); return nil }
	for _, c := range []struct {
		name  string
		fault func() error
	}{
		{"one member down", func() error {
			follower := (leader() + 1) % members
			return errors.Join(cluster.Kill(follower), sleep(), cluster.Run(follower))
		}},
		{"the leader killed", func() error {
			i := leader()
			return errors.Join(cluster.Kill(i), sleep(), cluster.Run(i))
		}},
		{"the leader stopped, to wake up as one no more", func() error {
			i := leader()
			return errors.Join(cluster.Signal(i, syscall.SIGSTOP), sleep(), sleep(), cluster.Signal(i, syscall.SIGCONT))
		}},
		{"all down and back", func() error {
			var errs []error
			for i := range members {
				errs = append(errs, cluster.Kill(i))
			}
			for i := range members {
				errs = append(errs, cluster.Run(i))
			}
			return errors.Join(append(errs, cluster.Wait(ctx))...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leasetest.Decided(t, func(n int) *leasetest.History {
				if err := cluster.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				return calls.Loaded(t, 5, func(nodes driver.NodeRange) (lease.Store, error) {
					return open(cluster.ClientForTest(t), fmt.Sprintf("/fault/%s-%d", c.name, n), nodes)
				}, c.fault)
			})
		})
	}
}
