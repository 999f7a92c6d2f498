// Package setup has recipes for programs that are configured by the environment or by
// OpenTelemetry's configuration file.
package setup_test

import (
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
)

// backend is a running server of a kind of store.
type backend struct {
	address string                      // host:port
	url     func(address string) string // of a store on the server, if it is at this address
	signal  func(syscall.Signal) error  // sends a signal to the server; nil if the test cannot
}

// backends start a server, on which the store with a name was not created.
var backends = map[string]func(t *testing.T, store string) backend{
	"PostgreSQL": func(t *testing.T, _ string) backend {
		server := servers.PostgresForTest(t)
		u, err := url.Parse(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		at := func(address string) string {
			moved := *u
			moved.Host = address
			return moved.String()
		}
		return backend{u.Host, at, postgresSignal(t, server)}
	},
	"etcd": func(t *testing.T, store string) backend {
		cluster := etcd.ForTest(t, 1)
		at := func(address string) string { return "etcd://user:hunter2@" + address + "/" + store }
		return backend{strings.TrimPrefix(cluster.Endpoints()[0], "http://"), at, cluster.Member(0).Signal}
	},
	"Kubernetes": func(t *testing.T, store string) backend {
		server := kubernetes.Shared(t)
		proxy := server.Proxy(t, server.Token(kubernetes.Admin))
		at := func(address string) string { return "k8s://default/" + store + "?server=http://" + address }
		return backend{strings.TrimPrefix(proxy, "http://"), at, server.Signal}
	},
	"S3": func(t *testing.T, store string) backend {
		s3.Root.Setenv(t)
		server := s3.ForTest(t)
		server.Bucket(t, "leases")
		at := func(address string) string { return "s3://leases/" + store + "?endpoint=http://" + address }
		return backend{strings.TrimPrefix(server.Endpoint(), "http://"), at, server.Signal}
	},
}
