package deploy

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
	_ "github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/setup"
)

// BenchmarkStart measures the cost of IDs when a process starts and ends, with each store: the
// minimum of all runs. docs/faq.md has the figures.
func BenchmarkStart(b *testing.B) {
	var file string
	for _, c := range []struct {
		name  string
		store func(*testing.B) string
	}{
		{"none", func(*testing.B) string { return "" }},
		{"bolt", func(*testing.B) string { return "bolt:" + file }},
		{"PostgreSQL", func(b *testing.B) string { return servers.PostgresForTest(b).DSN() }},
		{"etcd", func(b *testing.B) string {
			return "etcd://" + strings.TrimPrefix(etcd.ForTest(b, 1).Endpoints()[0], "http://")
		}},
		{"Kubernetes", func(b *testing.B) string {
			s := kubernetes.Shared(b)
			return "k8s://default/start?server=" + s.Proxy(b, s.Token(kubernetes.Admin))
		}},
		{"S3", func(b *testing.B) string {
			server := s3.ForTest(b)
			server.Bucket(b, "fleet")
			s3.Root.Setenv(b)
			return "s3://fleet/start?region=" + s3.Region + "&endpoint=" + url.QueryEscape(server.Endpoint())
		}},
	} {
		file = filepath.Join(b.TempDir(), "leases.db")
		b.Run(c.name, func(b *testing.B) {
			config := setup.Config{Store: c.store(b), SecretFile: secretFile(b), Strict: true}
			switch c.name {
			case "none":
				config = setup.Config{}
			case "bolt":
				config.SecretFile = "" // it has its own
			}
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
					b.Fatal("the process has no lease")
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
		})
	}
}
