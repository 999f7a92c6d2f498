package etcdstore

import (
	"context"
	"crypto/rand"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// variable has the address of an etcd, as host:port, in which the tests may write.
const variable = "TEST_ETCD"

// address returns it.
func address(tb testing.TB) string {
	tb.Helper()
	a := os.Getenv(variable)
	if a == "" {
		const why = "no etcd: run this in the repository, `go run ./integration/servers/with go test ./lease/etcdstore`, or set " +
			variable + " to host:port"
		if os.Getenv("CI") != "" {
			tb.Fatal(why)
		}
		tb.Skip(why)
	}
	return a
}

func newClient(tb testing.TB, address string) *clientv3.Client {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// newPrefix returns a prefix whose keys are deleted when the test ends.
func newPrefix(tb testing.TB) string {
	tb.Helper()
	prefix := "/traceflake-test/" + rand.Text() + "/"
	tb.Cleanup(func() {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{address(tb)}})
		if err == nil {
			_, err = c.Delete(context.Background(), prefix, clientv3.WithPrefix())
			_ = c.Close()
		}
		if err != nil {
			tb.Error(err)
		}
	})
	return prefix
}

// What a Server must do, on a real etcd.
func TestServer(t *testing.T) {
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		prefix, proxy := newPrefix(tb), pagestest.NewProxy(tb, address(tb))
		return pagestest.Storage{
			Open: func() (pages.Server, error) {
				return &server{client: newClient(tb, proxy.Address()), prefix: prefix}, nil
			},
			Delete: func(name string) error {
				_, err := newClient(tb, address(tb)).Delete(tb.Context(), prefix+name)
				return err
			},
			Stall: proxy.Stall,
		}
	})
}

var wantError = calls.WantError("etcdstore: ", "hunter2")
