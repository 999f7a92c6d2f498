package spans_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/spans"
	"github.com/traceflake/traceflake/traceid"
)

var id = traceid.Min(time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC))

// recorded returns a response of Tempo 3.0.3 or Jaeger 2.20.0, which testdata contains as it was
// received: for a trace of two spans, for an unknown one, and for a trace larger than
// max_bytes_per_trace.
func recorded(t *testing.T, name string) string {
	t.Helper()
	body, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestServers replays the responses of servers.
func TestServers(t *testing.T) {
	tempo, jaeger := recorded(t, "tempo-found.pb"), recorded(t, "jaeger-found.json")
	const tempo1, tempo2, jaeger3 = "/base/api/traces/", "/base/api/v2/traces/",
		"/base/api/v3/traces/"
	for _, c := range []struct {
		name    string
		open    func(string, http.Header) (spans.Source, error)
		answers map[string]string // by path in front of the ID; other paths are not found
		status  int
		spans   int
		err     string
	}{
		{"Tempo", spans.NewTempo, map[string]string{tempo2: tempo}, 200, 2, ""},
		{"old Tempo", spans.NewTempo, map[string]string{tempo1: recorded(t, "tempo-v1-found.pb")},
			200, 2, ""},
		{
			"Tempo without the trace", spans.NewTempo,
			map[string]string{tempo2: recorded(t, "tempo-missing.pb")}, 200, 0, "",
		},
		{
			"Tempo with a limit", spans.NewTempo,
			map[string]string{tempo2: recorded(t, "tempo-partial.pb")}, 200, 2,
			`: the trace is not complete: "Trace exceeds maximum size of 100 bytes, `,
		},
		{"Jaeger for Tempo", spans.NewTempo, map[string]string{tempo1: jaeger}, 200, 0,
			"its answer is not a trace"},
		{"cut", spans.NewTempo, map[string]string{tempo2: tempo[:9]}, 200, 0,
			"its answer is not a trace"},
		{
			"Tempo that fails", spans.NewTempo, map[string]string{tempo2: "too\x1b big"}, 500, 0,
			`500 Internal Server Error: "too\x1b big"`,
		},
		{"page of a gateway", spans.NewTempo, map[string]string{tempo2: "<html>"}, 502, 0,
			`502 Bad Gateway: "<html>"`},
		{"Jaeger", spans.NewJaeger, map[string]string{jaeger3: jaeger}, 200, 2, ""},
		{
			"Jaeger in parts", spans.NewJaeger,
			map[string]string{jaeger3: jaeger + "\n" + jaeger}, 200, 4, "",
		},
		{
			"Jaeger that fails amid the trace", spans.NewJaeger,
			map[string]string{jaeger3: jaeger + `{"error":{"message":"gone"}}`}, 200, 0,
			`"map[message:gone]"`,
		},
		{
			"Jaeger without the trace", spans.NewJaeger,
			map[string]string{jaeger3: recorded(t, "jaeger-missing.json")}, 404, 0, "",
		},
		{"another server", spans.NewTempo, map[string]string{"/other": ""}, 200, 0,
			"the server does not know the path of a trace; give the address of Tempo"},
		{"page of Jaeger", spans.NewJaeger, map[string]string{jaeger3: "<!DOCTYPE html>"}, 200, 0,
			"the server does not know the path of a trace; give the address of Jaeger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked = append(asked, r.URL.RawQuery)
					body, ok := c.answers[strings.TrimSuffix(r.URL.Path, id.String())]
					switch {
					case r.Header.Get("X-Scope-Orgid") != "1" || r.Host != "traces.example":
						http.Error(w, "no tenant", http.StatusUnauthorized)
					case !ok:
						http.NotFound(w, r)
					default:
						w.WriteHeader(c.status)
						_, _ = w.Write([]byte(body)) // the test sees what arrives
					}
				}))
			defer server.Close()
			source, err := c.open(server.URL+"/base",
				http.Header{"X-Scope-Orgid": {"1"}, "Host": {"traces.example"}})
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			err = source.Trace(t.Context(), id, func(td ptrace.Traces) error {
				got += td.SpanCount()
				return nil
			})
			if got != c.spans {
				t.Errorf("%d spans, want %d", got, c.spans)
			}
			if (err == nil) != (c.err == "") || err != nil &&
				!strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if len(asked) == 0 || !strings.Contains(asked[0], "start") {
				t.Errorf("queries %q: the first one has no bound from the ID", asked)
			}
		})
	}
}

func TestServerIsAway(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	source, err := spans.NewTempo("http://user:secret@"+server.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = source.Trace(t.Context(), id, nil)
	if err == nil || !strings.Contains(err.Error(), "connection refused") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := source.Trace(ctx, id, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the end of the context", err)
	}
	for _, address := range []string{"", "localhost:3200", "ftp://localhost", "http://",
		"http://a b", "::"} {
		if _, err := spans.NewJaeger(address, nil); err == nil {
			t.Errorf("the address %q is taken", address)
		}
	}
}
