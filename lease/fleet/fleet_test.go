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

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
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
	for _, name := range []string{"TRACEFLAKE_STORE", "TRACEFLAKE_SECRET_FILE", "TRACEFLAKE_SECRET",
		"TRACEFLAKE_TTL", "TRACEFLAKE_STRICT"} {
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
	if err := errors.Join(g.Shutdown(t.Context()), g.Shutdown(t.Context())); err != nil ||
		opened.closed != 1 {
		t.Errorf("closed %d times: %v", opened.closed, err)
	}
}

func TestReady(t *testing.T) {
	reportstest.Collect(t)
	for store, want := range map[string]string{
		"":                  "ready\n",
		"fleet-test://host": "ready\n",
		"fleet-test://away": "fleet: not ready: lease: no lease is held: context canceled; the " +
			"store says: lease: acquire: connection refused\n",
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

// Another secret is added to the file, and then a history begins under it: the process uses its
// lease to the end and switches without a restart, and verifies the IDs of both.
func TestRekey(t *testing.T) {
	vars := leased(t, "fleet-test://host", "TRACEFLAKE_TTL", "10s")
	env(t, vars)
	errs := reportstest.Collect(t)
	inBubble(t, func(t *testing.T) {
		g, err := fleet.FromEnv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Shutdown(t.Context()) }()
		before, _ := g.NewIDs(t.Context())
		text := secret + "\n00112233445566778899aabbccddeeff\n"
		if err := os.WriteFile(vars["TRACEFLAKE_SECRET_FILE"], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		begin(t, text, 1)
		time.Sleep(time.Minute)
		after, _ := g.NewIDs(t.Context())
		for secret, id := range []trace.TraceID{after, before} {
			if info := traceid.Inspect(g.Keyring(), id); !info.Agree || info.Secret != secret {
				t.Errorf("an ID is of key %d, want %d", info.Secret, secret)
			}
			if !g.Verifier().Verify(id) {
				t.Errorf("%s does not verify", id)
			}
		}
		// The file is not needed for another history under the same secret.
		if err := os.Remove(vars["TRACEFLAKE_SECRET_FILE"]); err != nil {
			t.Fatal(err)
		}
		begin(t, text, 1)
		time.Sleep(time.Minute)
		g.NewIDs(t.Context())
		if g.Fallbacks() > 0 || g.Ready(t.Context()) != nil {
			t.Errorf("%d fallbacks, %v; reported %v", g.Fallbacks(), g.Ready(t.Context()), errs())
		}
	})
}

// begin begins a history of the store that was opened last, under one of some secrets.
func begin(t *testing.T, secrets string, number int) lease.Description {
	t.Helper()
	d, err := opened.Describe(t.Context())
	k, parsed := randflake.ParseKeyring(secrets)
	if err := errors.Join(err, parsed); err != nil {
		t.Fatal(err)
	}
	d, err = opened.Begin(t.Context(), lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey,
		Now: time.Now(), Secrets: k, Secret: k.Codecs()[number], Known: d.Histories()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// leasedID returns an ID of a history as a process with its secret generates it.
func leasedID(t *testing.T, d lease.Description, at time.Time) trace.TraceID {
	t.Helper()
	k, err := randflake.ParseKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := d.Codec(k)
	if err != nil {
		t.Fatal(err)
	}
	low, err := codec.Encode(randflake.Parts{Time: at})
	if err != nil {
		t.Fatal(err)
	}
	id, err := traceid.New(at, 0, low)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// An ID of a history that others have begun makes a verifier read the description, in the
// background and at most once in five seconds. What it has learnt it does not forget, even if the
// store does. Old IDs cause no request.
func TestVerifierLearns(t *testing.T) {
	vars := leased(t, "fleet-test://host")
	env(t, vars)
	reportstest.Collect(t)
	inBubble(t, func(t *testing.T) {
		g, err := fleet.FromEnv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Shutdown(t.Context()) }()
		v := g.Verifier()
		first, err := opened.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		d := begin(t, secret, 0)
		before := opened.described.Load()
		foreign := leasedID(t, first, time.Now())
		foreign[15]++
		old := traceid.Min(time.Now().Add(-time.Hour))
		v.Verify(old)
		synctest.Wait()
		if n := opened.described.Load(); n != before {
			t.Errorf("an old ID made it read %d descriptions", n-before)
		}
		if id := leasedID(t, d, time.Now()); v.Verify(id) {
			t.Error("it is verified before the description was read")
		} else if synctest.Wait(); !v.Verify(id) {
			t.Error("it is not verified after the description was read")
		}
		for range 100 {
			v.Verify(foreign)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := opened.described.Load() - before; n < 2 || n > 3 {
			t.Errorf("%d descriptions were read in ten seconds, want 2 or 3", n)
		}

		opened.shown.Store(&first) // the store was set back
		time.Sleep(10 * time.Second)
		for _, known := range []lease.Description{first, d} {
			v.Verify(foreign)
			synctest.Wait()
			if !v.Verify(leasedID(t, known, time.Now())) {
				t.Errorf("the history %s was forgotten", known.ID)
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
		{"moved", true, nil, 6 * time.Second},
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
