package k8sstore

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// variable has the URL of an API server that needs no credentials, such as that of `kubectl proxy`, in
// whose namespace "default" the tests may write and delete Leases.
const variable = "TEST_KUBERNETES"

// What a Server must do, on a real API server.
func TestServer(t *testing.T) {
	url := os.Getenv(variable)
	if url == "" {
		const why = "no Kubernetes: run this in the repository, after `make api-server`, " +
			"`go run ./integration/servers/with go test ./lease/k8sstore`, or set " + variable + " to http://host:port"
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		proxy := pagestest.NewProxy(tb, strings.TrimPrefix(url, "http://"))
		name := "test-" + strings.ToLower(rand.Text())
		open := func() *objects { // as another process has it
			return &objects{client: newClient(nil), server: "http://" + proxy.Address(), namespace: "default", name: name}
		}
		remove := func(path, query string) error {
			var ignored struct{}
			r := request{verb: "delete", method: http.MethodDelete, path: open().path() + path, query: query}
			_, err := open().do(context.Background(), r, &ignored)
			return err
		}
		tb.Cleanup(func() {
			if err := remove("", "labelSelector="+fleetLabel+"%3D"+name); err != nil {
				tb.Error(err)
			}
		})
		return pagestest.Storage{
			Open:   func() (pages.Server, error) { return open(), nil },
			Delete: func(page string) error { return remove("/"+open().nameOf(page), "") },
			Stall:  proxy.Stall,
		}
	})
}
