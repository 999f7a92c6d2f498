package setup_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

func TestMain(m *testing.M) {
	s3.Main()
	kubernetes.Main(m)
}

// fleet returns strict settings for a store.
func fleet(t testing.TB, store string) setup.Config {
	t.Helper()
	handler := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	t.Cleanup(func() { otel.SetErrorHandler(handler) })
	return setup.Config{Store: store, SecretFile: secretFile(t, "dffd6021bb2bd5b0af676290809ec3a5"), Strict: true}
}

func secretFile(t testing.TB, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// codec returns the first secret of the settings.
func codec(t *testing.T, c setup.Config) *randflake.Codec {
	t.Helper()
	k, err := setup.LoadKeyring(c.SecretFile)
	if err != nil {
		t.Fatal(err)
	}
	return k.Codec()
}

// opens opens the settings and fails the test if that is an error.
func opens(t *testing.T, c setup.Config) *setup.IDs {
	t.Helper()
	ids, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ids.Shutdown(context.Background()) }) // fails while the store is unreachable
	return ids
}

// refused checks that a strict start fails with an error that contains all of the texts, and that
// a start that is not strict succeeds.
func refused(t *testing.T, c setup.Config, want error, texts ...string) {
	t.Helper()
	ids, err := c.Open(t.Context())
	if err == nil {
		_ = ids.Shutdown(context.Background())
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("it lacks %q: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows the password: %v", err)
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

func TestStrictPostgreSQL(t *testing.T) {
	server := servers.PostgresForTest(t)
	dsn, conn := server.DSN(), server.Connect(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	// with returns the address with one part changed.
	with := func(change func(*url.URL)) string {
		changed := *u
		change(&changed)
		return changed.String()
	}
	host := "TRACEFLAKE_STORE=postgres://" + u.Host

	refused(t, fleet(t, with(func(u *url.URL) { u.Path = "/nosuch" })), lease.ErrMisconfigured,
		host+"/nosuch: ", `database "nosuch" does not exist`)
	refused(t, fleet(t, with(func(u *url.URL) { u.User = url.UserPassword("nobody", "hunter2") })), lease.ErrMisconfigured,
		host+u.Path+": ", "nobody")
	refused(t, fleet(t, with(func(u *url.URL) { u.RawQuery += "&foo=bar" })), lease.ErrMisconfigured, host, "foo")
	refused(t, fleet(t, with(func(u *url.URL) { u.RawQuery = "sslmode=require" })), lease.ErrMisconfigured, host, "TLS")
	c := fleet(t, dsn)
	servers.CreateStore(t, dsn, codec(t, c))
	if _, err := conn.Exec(t.Context(), "CREATE ROLE traceflake_strict LOGIN PASSWORD 'hunter2'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), "DROP ROLE traceflake_strict") })
	role := with(func(u *url.URL) { u.User = url.UserPassword("traceflake_strict", "hunter2") })
	refused(t, fleet(t, role), lease.ErrMisconfigured, host, "grant SELECT and UPDATE")
}

// What a strict start refuses on every store, and what it does not: a store that is unreachable or
// has no free block. In both cases the probe reports the reason.
func TestStrictOnEveryStore(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t, "strict")
			c := fleet(t, b.url(b.address))
			refused(t, c, lease.ErrNoStore, "TRACEFLAKE_STORE=", "traceflake lease create")
			store := servers.CreateStore(t, c.Store, codec(t, c))
			foreign := c
			foreign.SecretFile = secretFile(t, "00112233445566778899aabbccddeeff")
			refused(t, foreign, lease.ErrWrongSecret, "TRACEFLAKE_SECRET_FILE="+foreign.SecretFile, "belongs to another secret")
			if err := opens(t, c).Ready(canceled()); err != nil {
				t.Error(err)
			}

			if _, err := store.Raise(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			waits(t, c, "no free block")
			nobody, err := child.Addresses(1)
			if err != nil {
				t.Fatal(err)
			}
			c.Store = b.url(nobody[0])
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
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(got, text) || strings.Contains(got, "hunter2") {
		t.Errorf("%d %s, want %q", w.Code, got, text)
	}
	if ids.NewIDs(t.Context()); ids.Fallbacks() != 1 {
		t.Error("the process has a lease")
	}
}

func TestStrictKubernetes(t *testing.T) {
	server := kubernetes.Shared(t)
	at := func(token, namespace string) setup.Config {
		return fleet(t, "k8s://"+namespace+"/refused?server="+server.Proxy(t, token))
	}
	admin := server.Token(kubernetes.Admin)
	refused(t, at(server.Token(kubernetes.Limited), "default"), lease.ErrMisconfigured, "get, list, create and update")
	refused(t, at("hunter2", "default"), lease.ErrMisconfigured, "credentials")
	c := at(admin, "nowhere") // a read of a Lease does not reveal that its namespace is missing
	refused(t, c, lease.ErrNoStore, "traceflake lease create")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	refused(t, fleet(t, "k8s://default?server="+other.URL), lease.ErrMisconfigured, "check the server's URL")
}

func TestStrictS3(t *testing.T) {
	s3.Root.Setenv(t)
	server := s3.ForTest(t)
	c := fleet(t, "s3://nowhere?endpoint="+server.Endpoint())
	refused(t, c, lease.ErrMisconfigured, "there is no bucket nowhere")
	server.Bucket(t, "leases")
	c.Store = "s3://leases?endpoint=" + server.Endpoint()
	for _, keys := range []s3.Keys{{AccessKey: s3.Root.AccessKey, SecretKey: "hunter2"}, {AccessKey: "nobody", SecretKey: "hunter2"}} {
		keys.Setenv(t)
		refused(t, c, lease.ErrMisconfigured, "credentials")
	}
	s3.User.Setenv(t)
	refused(t, c, lease.ErrMisconfigured, "s3:GetObject and s3:PutObject on s3://leases/")
}

func TestStrictEtcd(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	client := cluster.ClientForTest(t)
	ctx := t.Context()
	host := strings.TrimPrefix(cluster.Endpoints()[0], "http://")
	c := fleet(t, "etcd://"+host)
	servers.CreateStore(t, c.Store, codec(t, c))
	for _, change := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "reader", "hunter2"); return err },
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.UserAdd(ctx, "root", "hunter2"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	store := "TRACEFLAKE_STORE=etcd://" + host + ": "
	refused(t, fleet(t, "etcd://"+host), lease.ErrMisconfigured, store, "set the user")
	refused(t, fleet(t, "etcd://reader:hunter2hunter2@"+host), lease.ErrMisconfigured, store)
	refused(t, fleet(t, "etcd://reader:hunter2@"+host), lease.ErrMisconfigured, store, "permission denied", "/traceflake/leases/")
	opens(t, fleet(t, "etcd://root:hunter2@"+host))
}
