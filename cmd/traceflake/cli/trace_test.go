package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// newJaeger starts a stub of a Jaeger with one trace, for the scripts, and returns its address.
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "1950fb0f8880000086cdcca4ab608495") {
			http.Error(w, "trace not found", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"result":` + string(body) + `}`)) // the scripts see what arrives
	}))
	t.Cleanup(server.Close)
	return server.URL
}
