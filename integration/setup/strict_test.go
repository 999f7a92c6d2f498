package setup_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/setup"
)

func TestMain(m *testing.M) { kubernetes.Main(m) }

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

// What a strict start refuses on every store, and what it does not: a store that is unreachable or
// has no free block. In both cases the probe reports the reason.
func TestStrictOnEveryStore(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t, "strict")
			c := fleet(t, b.url(b.address))
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
			refused(t, foreign, lease.ErrWrongSecret, "TRACEFLAKE_SECRET_FILE="+foreign.SecretFile, "belongs to another secret")
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

// shutsDown checks that Shutdown ends within its two seconds although the store does not respond and
// the context is over: of a process that waits, of one that is renewing its lease, and of one that is
// connecting.
func shutsDown(t *testing.T, b backend, c setup.Config) {
	t.Helper()
	relay := pagestest.NewProxy(t, b.address)
	c.Store = b.url(relay.Address())
	renewing := c
	renewing.TTL = 2 * time.Second
	processes := map[string]*setup.IDs{"waiting": opens(t, c), "renewing": opens(t, renewing)}
	for name, ids := range processes {
		if err := ids.Ready(canceled()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	relay.Stall()
	c.Strict = false // which waits for the store longer
	processes["connecting"] = opens(t, c)
	time.Sleep(500 * time.Millisecond)
	var all sync.WaitGroup
	for name, ids := range processes {
		all.Go(func() {
			began := time.Now()
			err := ids.Shutdown(canceled())
			if took := time.Since(began); took > 3*time.Second || name == "waiting" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: Shutdown took %s, want at most 3 s: %v", name, took, err)
			}
		})
	}
	all.Wait()
}
