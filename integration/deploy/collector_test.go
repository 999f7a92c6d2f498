package deploy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
)

// A service whose collector does not answer gives its lease back and ends before the kubelet kills it.
func TestCollectorIsStuck(t *testing.T) {
	sent := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sent <- r.URL.Path
		<-r.Context().Done() // the service has ended
	}))
	defer collector.Close()
	file := filepath.Join(t.TempDir(), "leases.db")
	cmd := exec.CommandContext(t.Context(), child.Build(t, "github.com/traceflake/traceflake/examples/otelhttp"), "orders", "127.0.0.1:0")
	cmd.Env = []string{"TRACEFLAKE_STORE=bolt:" + file,
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=60000"}
	orders := start(t, cmd)
	get(t, await(t, orders, 1, served)[0])
	began := time.Now()
	err := orders.Terminate()
	if took := time.Since(began); err == nil || took > 14*time.Second { // 12 s, and 2 s on a busy machine
		t.Errorf("ended after %s with %v, want an error after about 10 s: the spans were not sent", took, err)
	}
	if len(sent) == 0 || <-sent != "/v1/traces" {
		t.Error("the collector was not sent the spans")
	}
	store, err := boltstore.New(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := store.List(t.Context())
	if err != nil || len(blocks) != 1 || time.Until(blocks[0].End) > lease.DefaultTTL/2 {
		t.Errorf("got %+v, %v, want one lease, given back", blocks, err)
	}
}
