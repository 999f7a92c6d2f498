package fleet_test

import (
	"cmp"
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

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

const secret = "dffd6021bb2bd5b0af676290809ec3a5"

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
	for _, name := range []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_TTL",
		"TRACEFLAKE_STRICT"} {
		t.Setenv(name, vars[name])
	}
}

// fleet returns the variables of a fleet's process, and others.
func leased(t *testing.T, store string, others ...string) map[string]string {
	t.Helper()
	vars := map[string]string{"TRACEFLAKE_STORE": store,
		"TRACEFLAKE_SECRET_FILE": file(t, secret+"\n")}
	for i := 0; i < len(others); i += 2 {
		vars[others[i]] = others[i+1]
	}
	return vars
}

// fromEnv opens what the variables configure, until the test ends.
func fromEnv(t *testing.T, vars map[string]string) *fleet.IDs {
	t.Helper()
	env(t, vars)
	ids, err := fleet.FromEnv(t.Context())
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
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
		f(t)
	})
}

func TestFleet(t *testing.T) {
	g := fromEnv(t, leased(t, "fleet-test://host", "TRACEFLAKE_TTL", "1m"))
	id, _ := g.NewIDs(t.Context()) // the first one is already leased
	info := traceid.Inspect(g.Keyring(), id)
	if opened.url != "fleet-test://host" || info.Secret != 0 || info.Parts.Node < 256 ||
		info.Parts.Node >= 320 {
		t.Errorf("opened %q: secret %d, node %d", opened.url, info.Secret, info.Parts.Node)
	}
	blocks, err := opened.List(t.Context())
	if err != nil || len(blocks) != 1 || blocks[0].End.Sub(blocks[0].Start) != time.Minute {
		t.Fatalf("%v, %v; want one block for a minute", blocks, err)
	}
	// the second call changes nothing
	err = errors.Join(g.Shutdown(t.Context()), g.Shutdown(t.Context()))
	blocks, listErr := opened.List(t.Context())
	if err != nil || listErr != nil || opened.closed != 1 || blocks[0].Owner != "" {
		t.Errorf("closed %d times, %+v: %v, %v", opened.closed, blocks, err, listErr)
	}
}

// Once it is told of a restore, a process uses no lease of its directory, which may have been
// copied with its machine.
func TestRestoredWithADirectory(t *testing.T) {
	reportstest.Collect(t)
	config := fleet.Config{Store: "file:" + filepath.Join(t.TempDir(), "leases")}
	inBubble(t, func(t *testing.T) {
		ids, err := config.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ids.Shutdown(t.Context()) }()
		before := ids.Ready(t.Context())
		ids.OnRestore()
		ids.NewIDs(t.Context())
		time.Sleep(time.Minute)
		after := ids.Ready(t.Context())
		if before != nil || !errors.Is(after, filestore.ErrCopied) || ids.Fallbacks() == 0 {
			t.Errorf("ready: %v, then %v, want %v; %d fallbacks", before, after,
				filestore.ErrCopied, ids.Fallbacks())
		}
	})
}

// A directory that cannot be used now does not prevent a start, not even a strict one: it is an
// unavailable store, and is used when it is back. From then on the verifier knows its secret.
func TestUnavailableDirectory(t *testing.T) {
	reportstest.Collect(t)
	disk := filepath.Join(t.TempDir(), "not mounted")
	ids := fromEnv(t, map[string]string{"TRACEFLAKE_STRICT": "1",
		"TRACEFLAKE_STORE": "file:" + filepath.Join(disk, "leases")})
	id, _ := ids.NewIDs(t.Context())
	edge := ids.Verifier()
	if !id.IsValid() || ids.Fallbacks() == 0 || ids.Keyring() != nil || edge.Verify(id) {
		t.Errorf("the ID %s, %d fallbacks", id, ids.Fallbacks())
	}
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := ids.Ready(ctx); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if id, _ := ids.NewIDs(ctx); !edge.Verify(id) {
		t.Errorf("when it is back, the verifier refuses %s", id)
	}
}

func TestReady(t *testing.T) {
	reportstest.Collect(t)
	for store, want := range map[string]string{
		"":                  "ready\n",
		"fleet-test://host": "ready\n",
		"fleet-test://away": "fleet: not ready: lease: no grant yet: context canceled; the store " +
			"says: lease: acquire: connection refused\n",
	} {
		var vars map[string]string
		if store != "" {
			vars = leased(t, store)
		}
		g := fromEnv(t, vars)
		probe := func() (int, string) {
			w := httptest.NewRecorder()
			g.ReadyHandler().ServeHTTP(w,
				httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
			return w.Code, w.Body.String()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		code, text := probe()
		if err := g.Ready(ctx); text != want || (err == nil) != (code == http.StatusOK) ||
			err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, %d %s", store, err, code, text)
		}
		// the secret of zero configuration is not available
		if (g.Keyring() == nil) != (store == "") {
			t.Errorf("%s: keyring %v", store, g.Keyring())
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if code, _ := probe(); store != "" && code != http.StatusServiceUnavailable {
			t.Errorf("%s: after Shutdown: %d", store, code)
		}
	}
}

// A secret that was replaced is rolled out by its file alone: processes use their leases to the
// end, and then the new secret, without a restart. The old one still verifies.
func TestSecretIsReplaced(t *testing.T) {
	vars := leased(t, "fleet-test://host", "TRACEFLAKE_TTL", "10s")
	env(t, vars)
	reportstest.Collect(t)
	inBubble(t, func(t *testing.T) {
		g, err := fleet.FromEnv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Shutdown(t.Context()) }()
		before, _ := g.NewIDs(t.Context())
		d, err := opened.Describe(t.Context())
		next := lease.Description{ID: strings.Repeat("e", 32)}
		text := "00112233445566778899aabbccddeeff\n" + secret + "\n"
		k, parsed := randflake.ParseKeyring(text)
		if err := errors.Join(err, parsed, opened.Replace(t.Context(), d.ID, next.ID,
			next.Fingerprint(k.Codec()))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := g.Ready(t.Context()); !errors.Is(err, lease.ErrWrongSecret) {
			t.Errorf("before the rollout: %v", err)
		}
		if err := os.WriteFile(vars["TRACEFLAKE_SECRET_FILE"], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if err := g.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		after, _ := g.NewIDs(t.Context())
		for secret, id := range []trace.TraceID{after, before} {
			if info := traceid.Inspect(g.Keyring(), id); !info.Agree || info.Secret != secret {
				t.Errorf("an ID is of secret %d, want %d", info.Secret, secret)
			}
		}
	})
}

// A start waits for a second for the store. A strict one waits for the store's first answer, and
// fails with it if retrying cannot help.
func TestStrict(t *testing.T) {
	reportstest.Collect(t)
	for _, c := range []struct {
		answer string
		strict bool
		want   error
		takes  time.Duration
	}{
		{"role", false, nil, 0},
		{"role", true, lease.ErrMisconfigured, 0},
		{"newer", true, lease.ErrSchemaVersion, 0},
		{"absent", true, lease.ErrNoStore, 0},
		{"slow", true, lease.ErrMisconfigured, slowAnswer},
		{"host", true, nil, 0},
		{"away", true, nil, time.Second},
		{"full", true, nil, time.Second},
		{"replaced", true, nil, time.Second},
		{"dead", true, nil, 6 * time.Second},
		{"dead", false, nil, time.Second},
	} {
		config := fleet.Config{Store: "fleet-test://u:hunter2@" + c.answer,
			SecretFile: file(t, secret), Strict: c.strict}
		inBubble(t, func(t *testing.T) {
			start := time.Now()
			ids, err := config.Open(t.Context())
			took := time.Since(start)
			if !errors.Is(err, c.want) || took != c.takes || errors.Is(err, fleet.ErrConfig) ||
				err != nil &&
					(!strings.Contains(err.Error(), "TRACEFLAKE_STORE") ||
						strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%+v: %v after %s", c, err, took)
			}
			if err == nil {
				err = ids.Shutdown(t.Context())
			}
			if c.want == nil && c.answer != "dead" && err != nil || opened.closed != 1 {
				t.Errorf("%+v: %v; the store was closed %d times", c, err, opened.closed)
			}
		})
	}
}

// A context that is over, like that of signal.NotifyContext at a program's end, or that ends soon,
// does not prevent the lease from being given back. A store that hangs keeps such a process for two
// seconds, and others for as long as the Keeper's Close.
func TestShutdownAfterTheContextIsOver(t *testing.T) {
	reportstest.Collect(t)
	config := fleet.Config{Store: "fleet-test:host", SecretFile: file(t, secret)}
	for _, hangs := range []bool{false, true} {
		for ends, most := range map[time.Duration]time.Duration{ // from the call
			0: 2 * time.Second, time.Second: 2 * time.Second, time.Hour: 4 * time.Second,
		} {
			inBubble(t, func(t *testing.T) {
				ids, err := config.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				opened.hangs = hangs
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(ends, time.Hour))
				defer cancel()
				if ends == 0 {
					cancel()
				}
				start := time.Now()
				err = ids.Shutdown(ctx)
				took := time.Since(start)
				blocks, listErr := opened.List(t.Context())
				if hangs && (!errors.Is(err, context.DeadlineExceeded) || took != most) ||
					!hangs && (err != nil || listErr != nil || blocks[0].Owner != "") {
					t.Errorf("hangs: %v, the context ends after %s: %v after %s; %v, %+v", hangs,
						ends, err, took, listErr, blocks)
				}
			})
		}
	}
}

// Both the generator and the leases use the provider of the Config.
func TestMeterProvider(t *testing.T) {
	for _, c := range []fleet.Config{{},
		{Store: "fleet-test://host", SecretFile: file(t, secret)}} {
		reader := metric.NewManualReader()
		c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
		ids, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		series := metrictest.Collect(t, reader)
		_, generator := series["traceflake.id.borrowed s"]
		_, leases := series["traceflake.lease.blocks {block}"]
		if !generator || leases != (c.Store != "") {
			t.Errorf("%q has the metrics %v", c.Store, series)
		}
		if err := ids.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestLevel(t *testing.T) {
	for err, want := range map[error]slog.Level{
		reports.Recovered("lease: recovered"):    slog.LevelInfo,
		errAway:                                  slog.LevelWarn,
		fmt.Errorf("x: %w", lease.ErrNoStore):    slog.LevelError,
		fmt.Errorf("x: %w", fleet.ErrConfig):     slog.LevelError,
		fmt.Errorf("x: %w", lease.ErrNoFreeNode): slog.LevelWarn,
	} {
		if got := fleet.Level(err); got != want {
			t.Errorf("%v has the level %s, want %s", err, got, want)
		}
	}
}
