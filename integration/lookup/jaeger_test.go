//go:build jaeger

package lookup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lookup"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

const config = `
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry: {metrics: {level: none}, logs: {level: warn}}
extensions:
  jaeger_query:
    storage: {traces: store}
    http: {endpoint: %q}
    grpc: {endpoint: %q}
  jaeger_storage:
    backends:
      store: {memory: {max_traces: 1000}}
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  jaeger_storage_exporter: {trace_storage: store}
`

// jaeger runs a server and returns the addresses of its queries and of its OTLP receiver.
func jaeger(t *testing.T) (queries, otlp string) {
	t.Helper()
	at, err := child.Addresses(3)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, at[0], at[1], at[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := os.Getenv("TRACEFLAKE_JAEGER")
	if binary == "" {
		t.Fatal("TRACEFLAKE_JAEGER is not set: run make jaeger")
	}
	server := child.New("jaeger", func() *exec.Cmd { return exec.Command(binary, "--config", file) })
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready := func(ctx context.Context) error { return answers(ctx, "http://"+at[0]+"/api/services") }
	if err := child.Ready(ctx, ready, server); err != nil {
		t.Fatal(err)
	}
	return "http://" + at[0], at[2]
}

func answers(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// spansSent is how many spans send sends.
const spansSent = 4

// send sends a trace whose root starts at the given time and whose spans go on for hours.
func send(t *testing.T, otlp string, id trace.TraceID, at time.Time) trace.TraceID {
	t.Helper()
	spans := make([]map[string]any, spansSent)
	for i := range spans { // the root is the first
		start := at.Add(time.Duration(max(i-1, 0)) * time.Hour)
		spans[i] = map[string]any{"traceId": id.String(), "spanId": fmt.Sprintf("%016x", i+1), "name": "work",
			"startTimeUnixNano": fmt.Sprint(start.UnixNano()), "endTimeUnixNano": fmt.Sprint(start.Add(time.Second).UnixNano())}
		if i > 0 {
			spans[i]["parentSpanId"] = spans[0]["spanId"]
		}
	}
	spans[0]["endTimeUnixNano"] = fmt.Sprint(at.Add(3 * time.Hour).UnixNano())
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{"scopeSpans": []any{map[string]any{"spans": spans}}}}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post("http://"+otlp+"/v1/traces", "application/json", bytes.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	return id
}

// recorder records the queries that reach the server.
type recorder struct{ queries []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.queries = append(r.queries, req.URL.RawQuery)
	return http.DefaultTransport.RoundTrip(req)
}

// get returns an answer in a form that can be compared: Jaeger does not order the spans.
func get(t *testing.T, tripper http.RoundTripper, address string) (status int, spans []string) {
	t.Helper()
	resp, err := (&http.Client{Transport: tripper}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %v: %.200s", address, err, body)
	}
	collect(answer, &spans)
	slices.Sort(spans)
	return resp.StatusCode, spans
}

// collect finds the spans in an answer of either API.
func collect(answer any, spans *[]string) {
	switch a := answer.(type) {
	case []any:
		for _, e := range a {
			collect(e, spans)
		}
	case map[string]any:
		if a["spanId"] != nil || a["operationName"] != nil { // v3, v1
			text, _ := json.Marshal(a) // sorts the keys
			*spans = append(*spans, string(text))
			return
		}
		for _, e := range a {
			collect(e, spans)
		}
	}
}

// Looked up with the time in its ID, a trace of any age has the spans that it has without, in both
// of Jaeger's APIs, through the transport and through the command's proxy. One that does not exist
// is not found, with the bound nor without it. This storage ignores the bound, so no request for a
// trace that exists is repeated.
func TestJaeger(t *testing.T) {
	server, otlp := jaeger(t)
	newID := func(at time.Time) trace.TraceID {
		id, err := traceid.New(at, 1, randflake.ID(rand.Uint64()|1))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	now := time.Now()
	traces := make(map[string]trace.TraceID)
	for _, age := range []time.Duration{4 * time.Hour, 26 * time.Hour, 5 * 24 * time.Hour, 20 * 24 * time.Hour} {
		traces[age.String()] = send(t, otlp, newID(now.Add(-age)), now.Add(-age))
	}
	day := now.Add(-24 * time.Hour)
	traces["clock ahead"] = send(t, otlp, newID(day.Add(8*time.Hour)), day)
	traces["foreign"] = send(t, otlp, trace.TraceID{0xf5, 1, 2, 3, 4, 5, 6, 7, 0xff, 1, 2, 3, 4, 5, 6, 7}, day)
	traces["64 bits"] = send(t, otlp, trace.TraceID{15: 7, 8: 9}, day)
	absent := newID(day)

	proxy := "http://" + start(t, child.Build(t, child.Traceflake), nil, "--backend", "jaeger", server).address
	for _, path := range []string{"/api/v3/traces/", "/api/traces/"} {
		for name, id := range traces {
			address := path + id.String()
			status, want := get(t, http.DefaultTransport, server+address)
			if status != http.StatusOK || len(want) != spansSent {
				t.Fatalf("%s, %s: without a bound %d, %d spans", path, name, status, len(want))
			}
			queries := check(t, server+address, http.StatusOK, want)
			if _, got := get(t, http.DefaultTransport, proxy+address); !slices.Equal(got, want) {
				t.Errorf("%s, %s, proxy: %d spans, want %d", path, name, len(got), len(want))
			}
			// Once: the server refuses times that it cannot read, and the request would be repeated.
			bounded := !slices.Contains([]string{"foreign", "64 bits"}, name)
			if len(queries) != 1 || strings.Contains(queries[0], "start") != bounded {
				t.Errorf("%s, %s: queries %q, want one, with a bound: %v", path, name, queries, bounded)
			}
		}
		queries := check(t, server+path+absent.String(), http.StatusNotFound, nil)
		if len(queries) != 2 || queries[0] == "" || queries[1] != "" {
			t.Errorf("%s, absent: queries %q, want one with a bound and one without", path, queries)
		}
		if status, _ := get(t, http.DefaultTransport, proxy+path+absent.String()); status != http.StatusNotFound {
			t.Errorf("%s, absent, proxy: %d", path, status)
		}
	}
	checkForms(t, server, traces["26h0m0s"])
}

// check looks a trace up through the transport and returns the queries that it sent.
func check(t *testing.T, address string, status int, want []string) []string {
	t.Helper()
	var r recorder
	transport, err := lookup.New(lookup.Jaeger, lookup.WithTransport(&r))
	if err != nil {
		t.Fatal(err)
	}
	if code, got := get(t, transport, address); code != status || !slices.Equal(got, want) {
		t.Errorf("%s: %d, %d spans, want %d, %d spans", address, code, len(got), status, len(want))
	}
	return r.queries
}

// checkForms shows which parameters this server reads: it refuses them if they are not times.
func checkForms(t *testing.T, server string, id trace.TraceID) {
	t.Helper()
	for query, status := range map[string]int{
		"/api/v3/traces/%s?start_time=x": http.StatusBadRequest,
		"/api/v3/traces/%s?startTime=x":  http.StatusOK, // read by later versions
		"/api/traces/%s?start=x":         http.StatusBadRequest,
	} {
		if got, _ := get(t, http.DefaultTransport, server+fmt.Sprintf(query, id)); got != status {
			t.Errorf("%s: %d, want %d", query, got, status)
		}
	}
}
