package fleet_test

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

// backend is a running server with stores of one kind.
type backend struct {
	address string                             // host:port
	url     func(address, store string) string // of a store; address is the server's or a proxy's
	wrong   string                             // a URL that the server always refuses
	why     string                             // a part of that error
}

// backends has a function for each kind that starts a server.
var backends = map[string]func(t *testing.T) backend{
	"PostgreSQL": func(t *testing.T) backend {
		server := child.ForTest(t, servers.Postgres)
		u, err := url.Parse(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		admin := server.Connect(t)
		at := func(address, store string) string {
			if _, err := admin.Exec(t.Context(), "CREATE SCHEMA IF NOT EXISTS "+store); err != nil {
				t.Fatal(err)
			}
			moved := *u
			moved.Host, moved.RawQuery = address, u.RawQuery+"&search_path="+store
			return moved.String()
		}
		wrong := *u
		wrong.Path = "/nosuch"
		return backend{u.Host, at, wrong.String(), `database "nosuch" does not exist`}
	},
	"etcd": func(t *testing.T) backend {
		cluster := etcd.ForTest(t, 1)
		at := func(address, store string) string {
			return "etcd://user:hunter2@" + address + "/" + store
		}
		// without users
		return backend{address: strings.TrimPrefix(cluster.Endpoints()[0], "http://"), url: at}
	},
	"Kubernetes": func(t *testing.T) backend {
		server := child.ForTest(t, kubernetes.Start)
		proxy := server.Proxy(kubernetes.Token(kubernetes.Admin))
		at := func(address, store string) string {
			return "k8s://default/" + store + "?server=http://" + address
		}
		limited := at(strings.TrimPrefix(server.Proxy(kubernetes.Token(kubernetes.Limited)),
			"http://"), "strict")
		return backend{strings.TrimPrefix(proxy, "http://"), at, limited,
			"get, create and update"}
	},
	"S3": func(t *testing.T) backend {
		s3.Root.Setenv(t)
		server := child.ForTest(t, s3.Start)
		at := func(address, store string) string {
			return "s3://leases/" + store + "?endpoint=http://" + address
		}
		nowhere := "s3://nowhere?endpoint=" + server.Endpoint()
		return backend{strings.TrimPrefix(server.Endpoint(), "http://"), at, nowhere,
			"create the bucket"}
	},
}
