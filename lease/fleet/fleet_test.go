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

// One host without a secret file: the first process creates the directory, which has its own
// secret.
func TestOwnSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	g := fromEnv(t, map[string]string{"TRACEFLAKE_STORE": "file:" + path, "TRACEFLAKE_TTL": "90s"})
	own, err := filestore.New(path)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := own.Secrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id, _ := g.NewIDs(t.Context())
	if !traceid.Inspect(secrets, id).Agree ||
		!traceid.Inspect(g.Keyring(), id).Agree {
		t.Error("the ID, or the keyring, is not of the directory's secret")
	}
	if d, err := own.Describe(t.Context()); err != nil || d.LongestTTL != lease.MaxTTL {
		t.Errorf("the store is described as %+v, %v", d, err)
	}
}

// A lease directory is copied with its machine. Once they are told of the restore, copies
// make no IDs with leases of their directories, which grant the same nodes under one secret.
func TestRestoredWithACopy(t *testing.T) {
	reportstest.Collect(t)
	path := filepath.Join(t.TempDir(), "leases")
	// Few blocks, so that the copies take the same one at once.
	d := lease.Description{BlockSize: 32768}
	if s, err := filestore.New(path); err != nil || s.Create(t.Context(), d) != nil {
		t.Fatal(err)
	}
	var machines [2]*fleet.IDs
	before := map[string][]byte{}
	files, err := filepath.Glob(filepath.Join(path, "*"))
	for _, f := range files {
		data, readErr := os.ReadFile(f)
		before[f], err = data, errors.Join(err, readErr)
	}
	for i := range machines {
		machines[i] = fromEnv(t, map[string]string{"TRACEFLAKE_STORE": "file:" + path})
		if err := machines[i].Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for f, data := range before { // as if the other machine had not been there
			err = errors.Join(err, os.WriteFile(f, data, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ids := range machines {
		ids.OnRestore()
	}
	seen := map[[8]byte]bool{}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(
		time.Millisecond) {
		for i, ids := range machines {
			id, _ := ids.NewIDs(t.Context())
			low := [8]byte(id[8:])
			if seen[low] {
				t.Fatalf("machine %d: the low half %x occurs twice", i, low)
			}
			seen[low] = true
		}
	}
	if err := machines[0].Ready(t.Context()); !errors.Is(err, filestore.ErrCopied) {
		t.Errorf("ready: %v, want %v", err, filestore.ErrCopied)
	}
}

// A directory that cannot be used now does not prevent a start: it is an unavailable store, and is
// used when it is back.
func TestUnavailableDirectory(t *testing.T) {
	reportstest.Collect(t)
	for what, c := range map[string]struct{ take, giveBack func(path string) error }{
		"not mounted": {func(string) error { return nil },
			func(path string) error { return os.Mkdir(filepath.Dir(path), 0o700) }},
		"a file": {func(path string) error { return os.WriteFile(filepath.Dir(path), nil, 0o600) },
			func(path string) error {
				return errors.Join(os.Remove(filepath.Dir(path)),
					os.Mkdir(filepath.Dir(path), 0o700))
			}},
	} {
		path := filepath.Join(t.TempDir(), "disk", "leases")
		if err := c.take(path); err != nil {
			t.Fatal(err)
		}
		ids := fromEnv(t, map[string]string{"TRACEFLAKE_STORE": "file:" + path})
		id, _ := ids.NewIDs(t.Context())
		edge := ids.Verifier()
		if !id.IsValid() || ids.Fallbacks() == 0 || ids.Keyring() != nil || edge.Verify(id) {
			t.Errorf("%s: the ID %s, %d fallbacks", what, id, ids.Fallbacks())
		}
		if err := c.giveBack(path); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := ids.Ready(ctx); err != nil || ids.Keyring() == nil {
			t.Errorf("%s: when it is back: %v", what, err)
		}
		if id, _ := ids.NewIDs(ctx); !edge.Verify(id) {
			t.Errorf("%s: when it is back, the verifier refuses %s", what, id)
		}
		cancel()
	}
	env(t, map[string]string{"TRACEFLAKE_STRICT": "1",
		"TRACEFLAKE_STORE": "file:" + filepath.Join(t.TempDir(), "none", "leases")})
	ids, err := fleet.FromEnv(t.Context()) // it may be mounted later
	if err != nil {
		t.Fatal(err)
	}
	_ = ids.Shutdown(t.Context())
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
			err != nil &&
				(!errors.Is(err, errAway) || !errors.Is(err, context.DeadlineExceeded) ||
					code != http.StatusServiceUnavailable) {
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
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
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

func TestStrict(t *testing.T) {
	reportstest.Collect(t)
	for answer, want := range map[string]error{
		"role": lease.ErrMisconfigured, "newer": lease.ErrSchemaVersion, "absent": lease.ErrNoStore,
		"slow": lease.ErrMisconfigured,
		"host": nil, "away": nil, "full": nil, "replaced": nil,
	} {
		for _, strict := range []string{"1", "0", ""} {
			if answer != "role" && strict != "1" {
				continue
			}
			env(t, leased(t, "fleet-test://u:hunter2@"+answer, "TRACEFLAKE_STRICT", strict))
			g, err := fleet.FromEnv(t.Context())
			if strict != "1" {
				want = nil
			}
			if !errors.Is(err, want) || err != nil &&
				(!strings.Contains(err.Error(), "TRACEFLAKE_") ||
					strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%s, strict %q: %v, want %v", answer, strict, err, want)
			}
			if err == nil {
				err = g.Shutdown(t.Context())
			}
			if want == nil && err != nil || opened.closed != 1 {
				t.Errorf("%s, strict %q: %v; the store was closed %d times", answer, strict, err,
					opened.closed)
			}
		}
	}
}

// A start waits for a second for the store. A strict one waits for the store's first answer, and
// ends with it if retrying cannot help.
func TestStartWaits(t *testing.T) {
	reportstest.Collect(t)
	for _, c := range []struct {
		answer string
		strict bool
		want   time.Duration
	}{
		{"role", true, 0},
		{"slow", true, slowAnswer},
		{"away", true, time.Second},
		{"dead", true, 6 * time.Second},
		{"dead", false, time.Second},
	} {
		config := fleet.Config{Store: "fleet-test:" + c.answer, SecretFile: file(t, secret),
			Strict: c.strict}
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			ids, err := config.Open(t.Context())
			if took := time.Since(start); took != c.want || (err == nil) != (ids != nil) {
				t.Errorf("%s, strict %v: it took %s, want %s: %v", c.answer, c.strict, took, c.want,
					err)
			}
			if err == nil {
				_ = ids.Shutdown(t.Context())
			}
		})
	}
}

// A context that is over, like that of signal.NotifyContext at a program's end, or that ends soon,
// does not prevent the lease from being given back. A store that hangs keeps such a process for two
// seconds, not forever.
func TestShutdownAfterTheContextIsOver(t *testing.T) {
	reportstest.Collect(t)
	for _, hangs := range []bool{false, true} {
		for _, ends := range []time.Duration{0, time.Second} { // from the call
			ids := fromEnv(t, leased(t, "fleet-test:host"))
			opened.hangs.Store(hangs)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			err := ids.Shutdown(ctx)
			took := time.Since(start)
			blocks, listErr := opened.List(t.Context())
			if hangs && (!errors.Is(err, context.DeadlineExceeded) || took < 2*time.Second ||
				took > 10*time.Second) ||
				!hangs && (err != nil || listErr != nil || blocks[0].Owner != "") {
				t.Errorf("hangs: %v, the context ends after %s: %v after %s; %v, %+v", hangs, ends,
					err, took, listErr, blocks)
			}
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
