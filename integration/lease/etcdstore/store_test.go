//go:build unix

package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/history"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// The three members are all killed.
func TestProcesses(t *testing.T) {
	cluster := etcd.ForTest(t, 3)
	processes.Run(t, "etcd://"+strings.Join(cluster.Endpoints(), ","), processes.Outage(cluster))
}

// The answers that clients get while the leading member fails follow from the acknowledged writes.
func TestFaults(t *testing.T) {
	const members = 3
	cluster := etcd.ForTest(t, members)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	leader := func() (m *child.Server) {
		t.Helper()
		if err := child.Ready(ctx, func(ctx context.Context) error {
			for i, endpoint := range cluster.Endpoints() {
				if s, err := cluster.Status(ctx, endpoint); err == nil &&
					s.Leader == s.Header.MemberId {
					m = cluster.Members[i]
					return nil
				}
			}
			return errors.New("no member leads")
		}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, fault := range map[string]func(m *child.Server, during func()) error{
		"killed": func(m *child.Server, during func()) error {
			killed := m.Kill()
			during()
			return errors.Join(killed, m.Run())
		},
		"stopped, to wake up as leader no more": func(m *child.Server, during func()) error {
			stopped := m.Signal(syscall.SIGSTOP)
			during()
			return errors.Join(stopped, m.Signal(syscall.SIGCONT))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := cluster.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			at := "etcd://" + strings.Join(cluster.Endpoints(), ",") + "/" + rand.Text()
			history.Faults(t, func() driver.Objects { return calls.Objects(t, at) }, func() error {
				return fault(leader(), func() { time.Sleep(1400 * time.Millisecond) })
			})
		})
	}
}

var wantError = calls.WantError("etcdstore: ", "secret")

// With the least rights that the documentation requires, and with none.
func TestRights(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	ctx := context.Background()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(cluster.RoleAdd(ctx, "fleet"))
	end := clientv3.GetPrefixRangeEnd("/fleet/")
	must(cluster.RoleGrantPermission(ctx, "fleet", "/fleet/", end,
		clientv3.PermissionType(clientv3.PermReadWrite)))
	must(cluster.UserAdd(ctx, "user", "secret"))
	must(cluster.UserGrantRole(ctx, "user", "fleet"))
	must(cluster.RoleAdd(ctx, "look"))
	must(cluster.RoleGrantPermission(ctx, "look", "/fleet/", end,
		clientv3.PermissionType(clientv3.PermRead)))
	must(cluster.UserAdd(ctx, "reader", "secret"))
	must(cluster.UserGrantRole(ctx, "reader", "look"))
	must(cluster.UserAdd(ctx, "root", "secret"))
	must(cluster.UserGrantRole(ctx, "root", "root"))
	must(cluster.AuthEnable(ctx))
	try := func(url string) error {
		return calls.Everything(ctx, func() (stores.Store, error) { return stores.Open(url) })
	}
	host := cluster.Endpoints()[0]
	if err := try("etcd://user:secret@" + host + "/fleet/"); err != nil {
		t.Errorf("with the rights it needs: %v", err)
	}
	// A process can find its rights without a write.
	rights := func(user string) error {
		return calls.Open(t, "etcd://"+user+":secret@"+host+"/fleet/").CheckRights(ctx)
	}
	if err := rights("user"); err != nil {
		t.Errorf("the rights of the user: %v", err)
	}
	wantError(t, "the rights of a reader", rights("reader"), lease.ErrMisconfigured,
		"permission denied", "read and write")
	wantError(t, "another prefix", try("etcd://user:secret@"+host+"/other/"), nil,
		"permission denied", "read and write")
	wantError(t, "nobody", try("etcd://"+host+"/fleet/"), nil)
	wantError(t, "a wrong password", try("etcd://user:wrong@"+host+"/fleet/"), nil)
}
