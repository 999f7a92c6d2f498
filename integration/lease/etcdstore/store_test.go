//go:build unix

package etcdstore_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
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

// With the least rights that the documentation requires, with fewer, and with none.
func TestRights(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	ctx, end := t.Context(), clientv3.GetPrefixRangeEnd("/fleet/")
	for user, permission := range map[string]authpb.Permission_Type{"user": clientv3.PermReadWrite,
		"reader": clientv3.PermRead} {
		_, role := cluster.RoleAdd(ctx, user)
		_, granted := cluster.RoleGrantPermission(ctx, user, "/fleet/", end,
			clientv3.PermissionType(permission))
		_, added := cluster.UserAdd(ctx, user, "secret")
		_, err := cluster.UserGrantRole(ctx, user, user)
		if err := errors.Join(role, granted, added, err); err != nil {
			t.Fatal(err)
		}
	}
	_, added := cluster.UserAdd(ctx, "root", "secret")
	_, granted := cluster.UserGrantRole(ctx, "root", "root")
	_, enabled := cluster.AuthEnable(ctx)
	if err := errors.Join(added, granted, enabled); err != nil {
		t.Fatal(err)
	}
	at := func(user, prefix string) string {
		return "etcd://" + user + cluster.Endpoints()[0] + prefix
	}
	if err := calls.Open(t, at("user:secret@", "/fleet/")).CheckRights(ctx); err != nil {
		t.Errorf("the rights of the user: %v", err)
	}
	for _, c := range []struct{ user, prefix, want string }{
		{"reader:secret@", "/fleet/", "read and write"},
		{"user:secret@", "/fleet/", ""},
		{"user:secret@", "/other/", "read and write"},
		{"user:wrong@", "/fleet/", "correct user and password"},
		{"", "/fleet/", "set user and password"},
	} {
		open := func() (stores.Store, error) { return stores.Open(at(c.user, c.prefix)) }
		err := calls.Everything(ctx, open)
		if c.want != "" {
			wantError(t, c.user+c.prefix, err, lease.ErrMisconfigured, c.want)
		} else if err != nil {
			t.Errorf("with the rights it needs: %v", err)
		}
	}
	wantError(t, "a reader", calls.Open(t, at("reader:secret@", "/fleet/")).CheckRights(ctx),
		lease.ErrMisconfigured, "permission denied")
}
