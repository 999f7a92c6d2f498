package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/traceid"
)

const (
	secret = "dffd6021bb2bd5b0af676290809ec3a5"
	other  = "00112233445566778899aabbccddeeff"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env sets the given variables and clears the others.
func env(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_SECRET",
		"TRACEFLAKE_TTL", "TRACEFLAKE_STRICT"} {
		t.Setenv(name, vars[name])
	}
}

// open opens the settings until the test ends.
func open(t *testing.T, c fleet.Config) *fleet.IDs {
	t.Helper()
	ids, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// fails if the store is unreachable
	t.Cleanup(func() { _ = ids.Shutdown(context.Background()) })
	return ids
}

// inBubble runs f with a clock of its own, which shows a time at which leases are granted.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	reportstest.Collect(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
		f(t)
	})
}

// The environment configures a generator with the nodes of a lease. Secrets are never printed.
func TestFleet(t *testing.T) {
	env(t, map[string]string{"TRACEFLAKE_STORE": "fleet-test://host", "TRACEFLAKE_TTL": "1m",
		"TRACEFLAKE_SECRET": " " + other + "  " + secret + "\n"})
	c, err := fleet.Env()
	text := fmt.Sprintf("%v %+v %#v", c, c, c)
	if err != nil || strings.Contains(text, other[:8]) || strings.Contains(text, secret[:8]) {
		t.Fatalf("%v, or it shows a secret: %s", err, text)
	}
	ids := open(t, c)
	id, _ := ids.NewIDs(t.Context()) // the first one is already leased
	info := traceid.Inspect(ids.Keyring(), id)
	if info.Secret != 0 || info.Parts.Node < 256 || info.Parts.Node >= 320 ||
		!ids.Verifier().Verify(id) {
		t.Errorf("secret %d, node %d", info.Secret, info.Parts.Node)
	}
	blocks, err := opened.List(t.Context())
	if err != nil || len(blocks) != 1 || blocks[0].End.Sub(blocks[0].Start) != time.Minute {
		t.Fatalf("%v, %v; want one block for a minute", blocks, err)
	}
	// the second call changes nothing
	if err := errors.Join(ids.Shutdown(t.Context()), ids.Shutdown(t.Context())); err != nil ||
		!opened.closed {
		t.Errorf("the store is closed: %v, %v", opened.closed, err)
	}
}

// Zero configuration is ready, and a process whose lease has ended is not.
func TestReady(t *testing.T) {
	for store, want := range map[string]int{"": http.StatusOK,
		"fleet-test://host": http.StatusServiceUnavailable} {
		c := fleet.Config{Store: store}
		if store != "" {
			c.Secrets = keyring(secret)
		}
		ids := open(t, c)
		// the secret of zero configuration is not available
		if err := ids.Ready(t.Context()); err != nil || (ids.Keyring() == nil) != (store == "") {
			t.Errorf("%q: %v, keyring %v", store, err, ids.Keyring())
		}
		if err := ids.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		w := httptest.NewRecorder()
		ids.ReadyHandler().ServeHTTP(w,
			httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
		if w.Code != want {
			t.Errorf("%q: after Shutdown: %d %s", store, w.Code, w.Body)
		}
	}
}

// A start waits for a second for the store. A strict one waits for the store's first answer, and
// fails with it if retrying cannot help.
func TestStrict(t *testing.T) {
	for _, c := range []struct {
		answer string
		strict bool
		want   error
		takes  time.Duration
	}{
		{"role", false, nil, 0},
		{"role", true, lease.ErrMisconfigured, 0},
		{"slow", true, lease.ErrMisconfigured, slowAnswer},
		{"host", true, nil, 0},
		{"away", true, nil, time.Second},
		{"dead", true, nil, 6 * time.Second},
		{"dead", false, nil, time.Second},
	} {
		inBubble(t, func(t *testing.T) {
			start := time.Now()
			ids, err := fleet.Config{Store: "fleet-test://u:hunter2@" + c.answer,
				Secrets: keyring(secret), Strict: c.strict}.Open(t.Context())
			took, text := time.Since(start), fmt.Sprint(err)
			if err == nil {
				_ = ids.Shutdown(t.Context())
			}
			if !errors.Is(err, c.want) || took != c.takes || errors.Is(err, fleet.ErrConfig) ||
				c.want != nil && !strings.Contains(text, "TRACEFLAKE_STORE") ||
				strings.Contains(text, "hunter2") || !opened.closed {
				t.Errorf("%+v: %v after %s; the store is closed: %v", c, err, took, opened.closed)
			}
		})
	}
}

func TestLevel(t *testing.T) {
	for err, want := range map[error]slog.Level{
		reports.Recovered("lease: recovered"):    slog.LevelInfo,
		fmt.Errorf("x: %w", lease.ErrNoStore):    slog.LevelError,
		fmt.Errorf("x: %w", fleet.ErrConfig):     slog.LevelError,
		fmt.Errorf("x: %w", lease.ErrNoFreeNode): slog.LevelWarn,
	} {
		if got := fleet.Level(err); got != want {
			t.Errorf("%v has the level %s, want %s", err, got, want)
		}
	}
}
