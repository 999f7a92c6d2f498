package setup_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/setup"
)

// reported collects what is reported to otel.Handle during the test.
func reported(t *testing.T) func() []string {
	var mu sync.Mutex
	var texts []string
	old := otel.GetErrorHandler()
	t.Cleanup(func() { otel.SetErrorHandler(old) })
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, err.Error())
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(texts)
	}
}

// A variable that nothing reads is reported once, without its value. Kubernetes sets some for a Service.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("TRACEFLAKE_STROE", "hunter2")
	texts := reported(t)
	fromEnv(t, nil)
	if got := texts(); len(got) != 1 || !strings.Contains(got[0], "TRACEFLAKE_STROE") || strings.Contains(got[0], "hunter2") {
		t.Errorf("reported %q", got)
	}
	got := setup.Unknown([]string{
		"TRACEFLAKE_=1", "TRACEFLAKE_SECRET=x", "TRACEFLAKE_CLICKHOUSE_DSN=x", "TRACEFLAKE_SERVICE_HOST=x", "TRACEFLAKE_PORT_80_TCP_ADDR=x",
		"TRACEFLAKE_WEB_SERVICE_PORT=x", "TRACEFLAKE_WEB_PORT=x", "TRACEFLAKESTORE=x", "OTEL_TRACEFLAKE_STORE_SECRET=x",
	})
	if want := []string{"TRACEFLAKE_", "TRACEFLAKE_SECRET"}; !slices.Equal(got, want) {
		t.Errorf("unknown are %q, want %q", got, want)
	}
}

// A secret file that every user may read is reported once, and used.
func TestReadableSecret(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o644: 1, 0o604: 1, 0o640: 0, 0o400: 0} {
		vars := fleet(t, "setup-test://host")
		path := vars[setup.SecretFileVar]
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		texts := reported(t)
		fromEnv(t, vars)
		if got := texts(); len(got) != want || want > 0 && (!strings.Contains(got[0], path) || !strings.Contains(got[0], "chmod")) {
			t.Errorf("mode %s: reported %q, want %d", mode, got, want)
		}
	}
}

// docs/configuration.md lists every variable that is known, and no other.
func TestPageListsEveryVariable(t *testing.T) {
	names := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		slices.Sort(found)
		return found
	}
	page, code := names("../docs/configuration.md", "(?m)^\\| `(TRACEFLAKE_[A-Z_]+)`"), names("env.go", `"(TRACEFLAKE_[A-Z_]+[A-Z])"`)
	if !slices.Equal(page, code) || len(code) < 5 {
		t.Errorf("the page lists\n%q\nthe code knows\n%q", page, code)
	}
}

// Both the generator and the leases use the provider of the Config.
func TestMeterProvider(t *testing.T) {
	for _, c := range []setup.Config{{}, {Store: "setup-test://host", SecretFile: file(t, secret)}} {
		reader := metric.NewManualReader()
		c.MeterProvider = metric.NewMeterProvider(metric.WithReader(reader))
		ids, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := 1
		if c.Store != "" {
			want = 2
		}
		var data metricdata.ResourceMetrics
		if err := errors.Join(reader.Collect(t.Context(), &data), ids.Shutdown(t.Context())); err != nil || len(data.ScopeMetrics) != want {
			t.Errorf("%q: %d meters, want %d: %v", c.Store, len(data.ScopeMetrics), want, err)
		}
	}
}

func TestLevel(t *testing.T) {
	for err, want := range map[error]slog.Level{
		reports.Recovered("lease: recovered"):    slog.LevelInfo,
		errAway:                                  slog.LevelWarn,
		fmt.Errorf("x: %w", lease.ErrNoStore):    slog.LevelError,
		fmt.Errorf("x: %w", setup.ErrConfig):     slog.LevelError,
		fmt.Errorf("x: %w", lease.ErrNoFreeNode): slog.LevelWarn,
	} {
		if got := setup.Level(err); got != want {
			t.Errorf("%v has the level %s, want %s", err, got, want)
		}
	}
}
