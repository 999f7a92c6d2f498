//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/lease/processes"
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
	processes.Run(t, processes.Outage(cluster), "etcd://"+strings.Join(cluster.Endpoints(), ","))
}

// The answers that clients get while the leading member is stopped, and wakes up as leader no more,
// follow from the acknowledged writes.
func TestFaults(t *testing.T) {
	cluster := etcd.ForTest(t, 3)
	url := "etcd://" + strings.Join(cluster.Endpoints(), ",")
	history.Check(t, func() driver.Objects { return calls.Objects(t, url) }, func() error {
		for i, endpoint := range cluster.Endpoints() {
			s, err := cluster.Status(t.Context(), endpoint)
			if err != nil {
				return err
			}
			if s.Leader == s.Header.MemberId {
				stopped := cluster.Members[i].Signal(syscall.SIGSTOP)
				time.Sleep(1400 * time.Millisecond)
				return errors.Join(stopped, cluster.Members[i].Signal(syscall.SIGCONT))
			}
		}
		return errors.New("no member leads")
	})
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
