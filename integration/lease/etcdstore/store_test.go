//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) {
	leasetest.Worker()
	os.Exit(m.Run())
}

var prefixes atomic.Int64

// harness makes each storage a prefix of its own.
func harness(client *clientv3.Client) leasetest.Harness {
	return leasetest.Harness{New: func(testing.TB) leasetest.Storage {
		return storage(client, fmt.Sprintf("/storage/%d/", prefixes.Add(1)))
	}}
}

func storage(client *clientv3.Client, prefix string) leasetest.Storage {
	return leasetest.Storage{
		Open: func() (driver.Store, error) { return etcdstore.New(client, prefix) },
		Delete: func() error {
			_, err := client.Delete(context.Background(), prefix, clientv3.WithPrefix())
			return err
		},
	}
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, harness(etcd.ForTest(t, 1).Client))
}

// Processes reach three members through a bad network. The members are all killed.
func TestProcesses(t *testing.T) {
	cluster := etcd.ForTest(t, 3)
	var endpoints []string
	for _, address := range cluster.Endpoints() {
		endpoints = append(endpoints, "http://"+address)
	}
	proxy := faults.HTTP(t, faults.GRPC(), endpoints...)
	processes.Run(t, "etcd://"+strings.Join(proxy.Addresses, ","), processes.Outage(cluster))
	proxy.Check(t)
}

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

var wantError = calls.WantError("etcdstore: ", "secret")

// With the least rights that the documentation requires, and with none.
func TestRights(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	client := cluster.Client
	ctx := context.Background()
	end := clientv3.GetPrefixRangeEnd("/fleet/")
	steps := []func() error{
		func() error { _, err := client.RoleAdd(ctx, "fleet"); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, "fleet", "/fleet/", end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := client.UserAdd(ctx, "user", "secret"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "user", "fleet"); return err },
		func() error { _, err := client.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	try := func(url string) error {
		return calls.Everything(ctx, func() (driver.Store, error) { return driver.Open(url) }, nil)
	}
	host := cluster.Endpoints()[0]
	if err := try("etcd://user:secret@" + host + "/fleet/"); err != nil {
		t.Errorf("with the rights it needs: %v", err)
	}
	wantError(t, "another prefix", try("etcd://user:secret@"+host+"/other/"), nil, "permission denied", "read and write")
	wantError(t, "nobody", try("etcd://"+host+"/fleet/"), nil)
	wantError(t, "a wrong password", try("etcd://user:wrong@"+host+"/fleet/"), nil)
}
