// Package setup tests package setup with each store on a real server.
package setup_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
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
	address    string                      // host:port
	url        func(address string) string // of a store on the server, if it is at this address
	wrong, why string                      // a URL that the server refuses for good, and a text of the error
}

// backends start a server, on which the store with a name was not created.
var backends = map[string]func(t *testing.T, store string) backend{
	"PostgreSQL": func(t *testing.T, _ string) backend {
		server := child.ForTest(t, servers.Postgres)
		u, err := url.Parse(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		at := func(address string) string {
			moved := *u
			moved.Host = address
			return moved.String()
		}
		wrong := *u
		wrong.Path = "/nosuch"
		return backend{u.Host, at, wrong.String(), `database "nosuch" does not exist`}
	},
	"etcd": func(t *testing.T, store string) backend {
		cluster := etcd.ForTest(t, 1)
		at := func(address string) string { return "etcd://user:hunter2@" + address + "/" + store }
		return backend{address: strings.TrimPrefix(cluster.Endpoints()[0], "http://"), url: at} // without users
	},
	"Kubernetes": func(t *testing.T, store string) backend {
		server := kubernetes.Shared(t)
		proxy := server.Proxy(kubernetes.Token(kubernetes.Admin))
		at := func(address string) string { return "k8s://default/" + store + "?server=http://" + address }
		limited := "k8s://default/" + store + "?server=" + server.Proxy(kubernetes.Token(kubernetes.Limited))
		return backend{strings.TrimPrefix(proxy, "http://"), at, limited, "get, list, create and update"}
	},
	"S3": func(t *testing.T, store string) backend {
		s3.Root.Setenv(t)
		server := child.ForTest(t, s3.Start)
		at := func(address string) string { return "s3://leases/" + store + "?endpoint=http://" + address }
		nowhere := "s3://nowhere?endpoint=" + server.Endpoint()
		return backend{strings.TrimPrefix(server.Endpoint(), "http://"), at, nowhere, "create the bucket"}
	},
}
