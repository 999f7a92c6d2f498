// Package fleet tests package lease/fleet with each store on a real server.
package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
)

// leased returns strict settings for a store.
func leased(t testing.TB, store string) fleet.Config {
	t.Helper()
	reportstest.Collect(t)
	return fleet.Config{Store: store, SecretFile: secretFile(t, "dffd6021bb2bd5b0af676290809ec3a5"),
		Strict: true}
}

func secretFile(t testing.TB, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	child.Write(t, path, secret+"\n")
	return path
}

// opens opens the settings and fails the test if that is an error.
func opens(t *testing.T, c fleet.Config) *fleet.IDs {
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
func refused(t *testing.T, c fleet.Config, want error, texts ...string) {
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
			c := leased(t, b.url(b.address, "strict"))
			refused(t, c, lease.ErrNoStore, "TRACEFLAKE_STORE=", "traceflake lease create")
			if b.wrong != "" {
				refused(t, leased(t, b.wrong), lease.ErrMisconfigured, "TRACEFLAKE_STORE=", b.why)
			}
			create(t, c)
			foreign := c
			foreign.SecretFile = secretFile(t, "00112233445566778899aabbccddeeff")
			refused(t, foreign, lease.ErrWrongSecret, "TRACEFLAKE_STORE=",
				"has another secret")
			if err := opens(t, c).Ready(canceled()); err != nil {
				t.Error(err)
			}
			nobody, err := child.Addresses(1)
			if err != nil {
				t.Fatal(err)
			}
			c.Store = b.url(nobody[0], "strict")
			waits(t, c, nobody[0])
		})
	}
}

// create creates the store of the settings.
func create(t *testing.T, c fleet.Config) {
	t.Helper()
	s, err := stores.Open(c.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	k, err := c.LoadSecrets()
	if err == nil {
		_, err = s.Create(t.Context(), lease.Description{}, k.Codec())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// waits checks that a strict start succeeds without a lease, and that the probe reports a text.
func waits(t *testing.T, c fleet.Config, text string) {
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
