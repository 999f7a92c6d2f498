package deploy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/kubernetes"
	"github.com/traceflake/traceflake/setup"
)

// BenchmarkStart is that of internal/e2e/setup with an API server: the least of all runs.
// docs/faq.md has the figures.
func BenchmarkStart(b *testing.B) {
	admin, err := kubernetes.Shared(b).Kubeconfig(kubernetes.Admin)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("dffd6021bb2bd5b0af676290809ec3a5\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	config := setup.Config{Store: "k8s://default/start?kubeconfig=" + admin, SecretFile: file}
	start, end := time.Hour, time.Hour
	for range max(b.N, 20) {
		began := time.Now()
		ids, err := config.Open(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		ids.NewIDs(b.Context())
		start = min(start, time.Since(began))
		if ids.Fallbacks() > 0 {
			b.Fatal("it has no lease")
		}
		began = time.Now()
		if err := ids.Shutdown(context.Background()); err != nil {
			b.Fatal(err)
		}
		end = min(end, time.Since(began))
	}
	b.ReportMetric(float64(start.Microseconds())/1e3, "ms/start")
	b.ReportMetric(float64(end.Microseconds())/1e3, "ms/end")
	b.ReportMetric(0, "ns/op")
}
