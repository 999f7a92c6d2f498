// Package setup tests package setup with each store on a real server.
package setup_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/setup"
)

func TestMain(m *testing.M) { kubernetes.Main(m) }

// fleet returns strict settings for a store.
func fleet(t testing.TB, store string) setup.Config {
	t.Helper()
	reportstest.Collect(t)
	return setup.Config{Store: store, SecretFile: secretFile(t, "dffd6021bb2bd5b0af676290809ec3a5"),
		Strict: true}
}

func secretFile(t testing.TB, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opens opens the settings and fails the test if that is an error.
func opens(t *testing.T, c setup.Config) *setup.IDs {
	t.Helper()
	ids, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// fails while the store is unreachable
	t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
	return ids
}

// refused checks that a strict start fails with an error that contains all of the texts, and that
// a start that is not strict succeeds.
func refused(t *testing.T, c setup.Config, want error, texts ...string) {
	t.Helper()
	_, err := c.Open(t.Context())
	if !errors.Is(err, want) || strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("got %v, want %v without a password", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("it lacks %q: %v", text, err)
		}
	}
	c.Strict = false
	if ids := opens(t, c); ids.Ready(canceled()) == nil {
		t.Error("the process has a lease")
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A strict start fails on permanent errors of every store, but not if the store is unreachable or
// has no free block. In both cases the probe reports the reason.
func TestStrictOnEveryStore(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			c := fleet(t, b.url(b.address, "strict"))
			refused(t, c, lease.ErrNoStore, "TRACEFLAKE_STORE=", "traceflake lease create")
			if b.wrong != "" {
				refused(t, fleet(t, b.wrong), lease.ErrMisconfigured, "TRACEFLAKE_STORE=", b.why)
			}
			keyring, err := setup.LoadKeyring(c.SecretFile)
			if err != nil {
				t.Fatal(err)
			}
			store := processes.Create(t, c.Store, keyring.Codec())
			foreign := c
			foreign.SecretFile = secretFile(t, "00112233445566778899aabbccddeeff")
			refused(t, foreign, lease.ErrWrongSecret, "TRACEFLAKE_SECRET_FILE="+foreign.SecretFile,
				"belongs to another secret")
			if err := opens(t, c).Ready(canceled()); err != nil {
				t.Error(err)
			}
			shutsDown(t, b, c)

			if _, err := store.Raise(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			waits(t, c, "no free block")
			nobody, err := child.Addresses(1)
			if err != nil {
				t.Fatal(err)
			}
			c.Store = b.url(nobody[0], "strict")
			waits(t, c, nobody[0])
		})
	}
}

// waits checks that a strict start succeeds without a lease, and that the probe reports a text.
func waits(t *testing.T, c setup.Config, text string) {
	t.Helper()
	ids := opens(t, c)
	w := httptest.NewRecorder()
	ids.ReadyHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
	got := w.Body.String()
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(got, text) ||
		strings.Contains(got, "hunter2") {
		t.Errorf("%d %s, want %q", w.Code, got, text)
	}
	if ids.NewIDs(t.Context()); ids.Fallbacks() != 1 {
		t.Error("the process has a lease")
	}
}

// shutsDown checks that Shutdown ends although the store does not respond, within 5 s without a
// deadline and within 2 s if the context is over: of a process that waits, of one that is renewing
// its lease, and of one that is connecting.
func shutsDown(t *testing.T, b backend, c setup.Config) {
	t.Helper()
	relay := network.NewProxy(t, b.address)
	c.Store = b.url(relay.Address(), "strict")
	renewing, connecting := c, c
	renewing.TTL = 2 * time.Second
	connecting.Strict = false // which waits for the store longer
	var ends []ending
	for _, e := range []ending{
		{most: 5 * time.Second, ctx: t.Context()}, {most: 2 * time.Second, ctx: canceled()},
	} {
		for name, c := range map[string]setup.Config{"waiting": c, "renewing": renewing} {
			e.name, e.ids = name, opens(t, c)
			if err := e.ids.Ready(canceled()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ends = append(ends, e)
		}
	}
	relay.Stall()
	for _, e := range []ending{ends[0], ends[2]} {
		e.name, e.ids = "connecting", opens(t, connecting)
		ends = append(ends, e)
	}
	time.Sleep(500 * time.Millisecond)
	shutDown(t, ends)
}

// ending is a process that ends, and how long it may take.
type ending struct {
	name string
	ids  *setup.IDs
	ctx  context.Context
	most time.Duration
}

// shutDown ends processes at once and checks how long each of them takes.
func shutDown(t *testing.T, ends []ending) {
	t.Helper()
	const loaded = time.Second // the delay of timers on a machine under load
	var all sync.WaitGroup
	for _, e := range ends {
		all.Go(func() {
			began := time.Now()
			err := e.ids.Shutdown(e.ctx)
			took := time.Since(began)
			t.Logf("%s: %s of %s", e.name, took.Round(time.Millisecond), e.most)
			if took > e.most+loaded || e.name == "waiting" &&
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Shutdown took %s, want at most %s: %v", e.name, took, e.most, err)
			}
		})
	}
	all.Wait()
}

// A server that accepts connections and never answers delays neither the start nor the end of a
// process for longer than any other server that hangs.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s3.Root.Setenv(t)
	at := silent.Addr().String()
	var mu sync.Mutex
	var ends []ending
	var all sync.WaitGroup
	for name, store := range map[string]string{
		"PostgreSQL":      "postgres://u:p@" + at + "/db",
		"etcd":            "etcd://" + at + "/fleet",
		"etcd with users": "etcd://u:p@" + at + "/fleet",
		"Kubernetes":      "k8s://default/fleet?server=http://" + at,
		"S3":              "s3://leases/fleet?region=r&endpoint=http://" + at,
	} {
		c := fleet(t, store)
		c.Strict = false
		for ctx, most := range map[context.Context]time.Duration{
			t.Context(): 5 * time.Second, canceled(): 2 * time.Second,
		} {
			all.Go(func() {
				began := time.Now()
				ids, err := c.Open(t.Context())
				if took := time.Since(began); err != nil || took > 2*time.Second {
					t.Errorf("%s: it took %s to start: %v", name, took, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, ending{name, ids, ctx, most})
			})
		}
	}
	all.Wait()
	shutDown(t, ends)
}

// backend is a running server of a kind of store.
type backend struct {
	address string // host:port
	// url returns that of a store with a name, if the server is at this address
	url func(address, store string) string
	// a URL that the server refuses for good, and a text of the error
	wrong, why string
}

// backends start a server.
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
		server := kubernetes.Shared(t)
		proxy := server.Proxy(kubernetes.Token(kubernetes.Admin))
		at := func(address, store string) string {
			return "k8s://default/" + store + "?server=http://" + address
		}
		limited := at(strings.TrimPrefix(server.Proxy(kubernetes.Token(kubernetes.Limited)),
			"http://"), "strict")
		return backend{strings.TrimPrefix(proxy, "http://"), at, limited,
			"get, list, create and update"}
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
