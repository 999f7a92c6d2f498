//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// What clients see while members fail is linearizable, with those calls whose
// answer was lost carried out or not.
func TestFaults(t *testing.T) {
	const members = 3
	cluster := etcd.ForTest(t, members)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// member returns the one that leads, or the nth after it.
	member := func(n int) *child.Server {
		t.Helper()
		i, err := cluster.Leader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return cluster.Member((i + n) % members)
	}
	sleep := func() error { time.Sleep(700 * time.Millisecond); return nil }
	for _, c := range []struct {
		name  string
		fault func() error
	}{
		{"one member down", func() error {
			follower := member(1)
			return errors.Join(follower.Kill(), sleep(), follower.Run())
		}},
		{"the leader killed", func() error {
			leader := member(0)
			return errors.Join(leader.Kill(), sleep(), leader.Run())
		}},
		{"the leader stopped, to wake up as one no more", func() error {
			leader := member(0)
			return errors.Join(leader.Signal(syscall.SIGSTOP), sleep(), sleep(), leader.Signal(syscall.SIGCONT))
		}},
		{"all down and back", func() error { return processes.Outage(cluster)(func() {}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			leasetest.Faults(t, 5, func(tb testing.TB) leasetest.Storage {
				if err := cluster.Wait(ctx); err != nil {
					tb.Fatal(err)
				}
				return harness(cluster.Client).New(tb)
			}, c.fault)
		})
	}
}
