// Package fleet tests package lease/fleet with each store on a real server.
package fleet_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
)

// backends has a function for each kind of store that starts a server. It returns the URL of a
// store, one that the server always refuses, and a part of that error.
var backends = map[string]func(t *testing.T) (store, wrong, why string){
	"PostgreSQL": func(t *testing.T) (store, wrong, why string) {
		u, err := url.Parse(child.ForTest(t, servers.Postgres).DSN())
		if err != nil {
			t.Fatal(err)
		}
		store, u.Path = u.String(), "/nosuch"
		return store, u.String(), `database "nosuch" does not exist`
	},
	"etcd": func(t *testing.T) (store, wrong, why string) { // without users
		return "etcd://" + etcd.ForTest(t, 1).Endpoints()[0], "", ""
	},
	"Kubernetes": func(t *testing.T) (store, wrong, why string) {
		server := child.ForTest(t, kubernetes.Start)
		at := func(user string) string {
			return "k8s://default?server=" + server.Proxy(kubernetes.Token(user))
		}
		return at(kubernetes.Admin), at(kubernetes.Limited), "forbidden"
	},
	"S3": func(t *testing.T) (store, wrong, why string) {
		s3.Root.Setenv(t)
		endpoint := "?endpoint=" + child.ForTest(t, s3.Start).Endpoint()
		return "s3://leases" + endpoint, "s3://nowhere" + endpoint, "NoSuchBucket"
	},
}

// A strict start fails on permanent errors of every store, but not if the store is unreachable. A
// process that starts without a lease is not ready, and its probe has the reason.
func TestStrictOnEveryStore(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			reportstest.Collect(t)
			store, wrong, why := start(t)
			starts := func(store, secret string, want error, text string) {
				t.Helper()
				c := fleet.Config{Store: store, SecretFile: secret, Strict: true}
				ids, err := c.Open(t.Context())
				if !errors.Is(err, want) || want != nil &&
					(!strings.Contains(err.Error(), text) || lease.Fix(err) == "") {
					t.Fatalf("got %v, want %v with %q and a fix", err, want, text)
				}
				if want != nil {
					c.Strict = false
					if ids, err = c.Open(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				defer func() { _ = ids.Shutdown(t.Context()) }() // fails while it is unreachable
				w := httptest.NewRecorder()
				ids.ReadyHandler().ServeHTTP(w,
					httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
				if !strings.Contains(w.Body.String(), text) ||
					(text == "ready") != (w.Code == http.StatusOK) {
					t.Errorf("%d %s, want %q", w.Code, w.Body, text)
				}
			}
			secrets := [2]string{t.TempDir() + "/ours", t.TempDir() + "/theirs"}
			child.Write(t, secrets[0], "dffd6021bb2bd5b0af676290809ec3a5")
			child.Write(t, secrets[1], "00112233445566778899aabbccddeeff")
			starts(store, secrets[0], lease.ErrNoStore, "no lease store exists here")
			if wrong != "" {
				starts(wrong, secrets[0], lease.ErrMisconfigured, why)
			}
			k, err := fleet.LoadKeyring(secrets[0])
			if err == nil {
				_, err = calls.Open(t, store).Create(t.Context(), lease.Description{}, k.Codec())
			}
			if err != nil {
				t.Fatal(err)
			}
			starts(store, secrets[1], lease.ErrWrongSecret, "has another secret")
			starts(store, secrets[0], nil, "ready")
			nobody, err := child.Addresses(1)
			if err != nil {
				t.Fatal(err)
			}
			host := regexp.MustCompile(`127\.0\.0\.1:\d+`)
			starts(host.ReplaceAllString(store, nobody[0]), secrets[0], nil, nobody[0])
		})
	}
}
