package spans_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/spans"
	"github.com/traceflake/traceflake/traceid"
)

var id = traceid.Min(time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC))

func oneSpan() ptrace.Traces {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("GET /")
	return td
}

func protobuf(t *testing.T, td ptrace.Traces) string {
	t.Helper()
	var m ptrace.ProtoMarshaler
	body, err := m.MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// v2 is Tempo's answer to its second API: the trace, and metrics.
func v2(t *testing.T, td ptrace.Traces) string {
	t.Helper()
	body := protowire.AppendTag(nil, 1, protowire.BytesType)
	body = protowire.AppendString(body, protobuf(t, td))
	body = protowire.AppendTag(body, 2, protowire.BytesType)
	return string(protowire.AppendString(body, ""))
}

// TestServers asks servers that are stubs with the answers of a Tempo and a Jaeger.
func TestServers(t *testing.T) {
	jaeger := func(td ptrace.Traces) string {
		var m ptrace.JSONMarshaler
		body, err := m.MarshalTraces(td)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"result":%s}`, body)
	}
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
		{"Tempo", spans.NewTempo, map[string]string{tempo2: v2(t, oneSpan())}, 200, 1, ""},
		{"old Tempo", spans.NewTempo, map[string]string{tempo1: protobuf(t, oneSpan())}, 200, 1,
			""},
		{
			"Tempo without the trace", spans.NewTempo,
			map[string]string{tempo2: v2(t, ptrace.NewTraces())}, 200, 0, "",
		},
		{"not a Tempo", spans.NewTempo, map[string]string{tempo2: "<html>"}, 200, 0,
			"its answer is not a trace"},
		{"cut", spans.NewTempo, map[string]string{tempo2: v2(t, oneSpan())[:9]}, 200, 0,
			"its answer is not a trace"},
		{
			"Tempo that fails", spans.NewTempo, map[string]string{tempo2: "too\x1b big"}, 500, 0,
			`500 Internal Server Error: "too\x1b big"`,
		},
		{"Jaeger", spans.NewJaeger, map[string]string{jaeger3: jaeger(oneSpan())}, 200, 1, ""},
		{
			"Jaeger in parts", spans.NewJaeger,
			map[string]string{jaeger3: jaeger(oneSpan()) + "\n" + jaeger(oneSpan())}, 200, 2, "",
		},
		{
			"Jaeger that fails amid the trace", spans.NewJaeger,
			map[string]string{jaeger3: jaeger(oneSpan()) + `{"error":{"message":"gone"}}`}, 200, 0,
			`"map[message:gone]"`,
		},
		{"Jaeger without the trace", spans.NewJaeger, nil, 200, 0, ""},
		{"another server", spans.NewTempo, map[string]string{"/other": ""}, 200, 0,
			"404 Not Found, as for a path that it does not know; give the address of Tempo"},
		{"not a Jaeger", spans.NewJaeger, map[string]string{jaeger3: "<html>"}, 200, 0,
			"its answer is not a trace"},
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
					case !ok && len(c.answers) > 0:
						http.NotFound(w, r)
					case !ok:
						http.Error(w, "trace not found", http.StatusNotFound)
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
