package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestTrace prints traces of a server that is a stub of Jaeger: what ClickHouse stores is tested in
// integration/collector.
func TestTrace(t *testing.T) {
	const id = "1950fb0f8880000086cdcca4ab608495"
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("GET /")
	var m ptrace.JSONMarshaler
	body, err := m.MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	jaeger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, id) {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"result":` + string(body) + `}`)) // the test sees what arrives
	}))
	defer jaeger.Close()
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "")
	const missing = "1950fb0f8880000086cdcca4ab608496"
	for _, c := range []struct {
		args, stdin string
		code        int
		out, errOut string
	}{
		{id + " --jaeger " + jaeger.URL, "", 0, "unknown_service GET /", ""},
		{"--jaeger " + jaeger.URL, "b3: " + id + "-00f067aa0ba902b7-1\n\n" + id, 0, "trace " + id,
			""},
		{id + " -o json --jaeger " + jaeger.URL, "", 0, string(body) + "\n", ""},
		{
			id + " " + missing + " --jaeger " + jaeger.URL, "", 1, "GET /",
			"trace " + missing + " is not in Jaeger at http://",
		},
		{"--jaeger " + jaeger.URL, "no ID here\n" + id, 1, "GET /", "line 1: "},
		{"00f067aa0ba902b7 --jaeger " + jaeger.URL, "", 1, "",
			"trace 000000000000000000f067aa0ba902b7 is not"},
		{"span_id=00f067aa0ba902b7 --jaeger " + jaeger.URL, "", 1, "", "contains no trace ID"},
		{id, "", 2, "", "no address: set --dsn"},
		{id + " --jaeger x --tempo y", "", 2, "", "--tempo and --jaeger: give one of them"},
		{id + " --jaeger localhost:16686", "", 2, "",
			"the address is invalid: want http://host:port"},
		{id + " --header a:b", "", 2, "", "--header needs --tempo or --jaeger"},
		{id + " --tempo http://x --header a", "", 2, "", `--header: want "Name: value"`},
		{id + " --tempo http://x --logs", "", 2, "", "only ClickHouse stores logs"},
		{id + " --tempo http://x --dsn http://y", "", 2, "", "leave it out with --tempo"},
		{id + " --spans -1", "", 2, "", "-1 is negative; 0 draws all"},
		{id + " --width -1", "", 2, "", "-1 is negative"},
		{"--tempo http://x", "", 2, "", "no IDs: give some"},
	} {
		command(t, c.stdin, append([]string{"trace"}, strings.Fields(c.args)...)...).want(t, c.code,
			c.out, c.errOut)
	}
}
