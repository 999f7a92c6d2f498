package etcdstore_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
)

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
