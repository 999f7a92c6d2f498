package setup_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

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

// A variable that nothing reads is reported once, without its value.
func TestUnknownVariables(t *testing.T) {
	for name, want := range map[string]string{
		"TRACEFLAKE_STROE":             "docs/configuration.md lists",
		"TRACEFLAKE_SECRET":            "docs/configuration.md lists",
		"TRACEFLAKE_LOG_LEVEL":         "docs/configuration.md lists",
		"TRACEFLAKE_":                  "docs/configuration.md lists",
		"TRACEFLAKE_CLICKHOUSE_DSN":    "",
		"TRACEFLAKE_SERVICE_HOST":      "", // Kubernetes sets these
		"TRACEFLAKE_PORT_80_TCP_ADDR":  "",
		"TRACEFLAKE_WEB_SERVICE_PORT":  "",
		"TRACEFLAKE_WEB_PORT":          "",
		"TRACEFLAKESTORE":              "",
		"OTEL_TRACEFLAKE_STORE_SECRET": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "hunter2")
			texts := reported(t)
			fromEnv(t, nil)
			switch got := texts(); {
			case want == "" && len(got) > 0:
				t.Errorf("reported %q", got)
			case want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], name)):
				t.Errorf("reported %q, want once %q", got, want)
			case strings.Contains(strings.Join(got, ""), "hunter2"):
				t.Errorf("the value is shown: %q", got)
			}
		})
	}
}

// A secret file that every user may read is reported once, and used.
func TestReadableSecret(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o644: 1, 0o604: 1, 0o640: 0, 0o400: 0} {
		t.Run(mode.String(), func(t *testing.T) {
			vars := fleet(t, "setup-test://host")
			path := vars[setup.SecretFileVar]
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			texts := reported(t)
			fromEnv(t, vars)
			got := texts()
			if len(got) != want || want > 0 && (!strings.Contains(got[0], path) || !strings.Contains(got[0], "chmod")) {
				t.Errorf("reported %q, want %d", got, want)
			}
		})
	}
}

// docs/configuration.md lists every variable that the released packages read.
func TestPageListsEveryVariable(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(TRACEFLAKE_[A-Z_]+)`").FindAllSubmatch(page, -1) {
		listed[string(row[1])] = true
	}
	unreleased := []string{"../.cache", "../.git", "../bench", "../examples", "../integration", "../internal", "../lease/leasetest"}
	read := map[string]bool{}
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(unreleased, path):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, literal := range regexp.MustCompile(`"(TRACEFLAKE_[A-Z_]+)"`).FindAllSubmatch(source, -1) {
			read[string(literal[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) {
		t.Errorf("the page lists\n%q\nthe code reads\n%q", got, want)
	}
}

// Both the generator and the leases use the provider of the Config.
func TestMeterProvider(t *testing.T) {
	for name, want := range map[string]int{"": 1, "setup-test://host": 2} {
		reader := metric.NewManualReader()
		c := setup.Config{Store: name, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
		if name != "" {
			c.SecretFile = file(t, secret)
		}
		ids, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var data metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &data); err != nil || len(data.ScopeMetrics) != want {
			t.Errorf("%q: %d meters, want %d: %v", name, len(data.ScopeMetrics), want, err)
		}
		if err := ids.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
