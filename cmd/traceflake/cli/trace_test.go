package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// newJaeger starts a stub, for the scripts, of a Jaeger with one trace, and of a Tempo that returns
// only a part of it. It returns the address.
func newJaeger(t *testing.T) string {
	t.Helper()
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("GET /")
	var m ptrace.JSONMarshaler
	body, err := m.MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	partial, err := os.ReadFile("../internal/spans/testdata/tempo-partial.pb")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v3/traces/1950fb0f8880000086cdcca4ab608495",
		func(w http.ResponseWriter, _ *http.Request) {
			// The scripts see what arrives.
			_, _ = w.Write([]byte(`{"result":` + string(body) + `}`))
		})
	mux.HandleFunc("/api/v3/traces/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "trace not found", http.StatusNotFound)
	})
	mux.HandleFunc("/api/v2/traces/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(partial)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
