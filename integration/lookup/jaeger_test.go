//go:build jaeger

package lookup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	queries = "http://" + at[0]
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, at[0], at[1], at[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := os.Getenv("TRACEFLAKE_JAEGER")
	if binary == "" {
		t.Fatal("TRACEFLAKE_JAEGER is not set: run make jaeger")
	}
	server := &child.Server{Name: "jaeger", Command: func() *exec.Cmd { return exec.Command(binary, "--config", file) }}
	server.Answers = func(context.Context) error {
		_, err := fetch(queries + "/api/services")
		return err
	}
	t.Cleanup(func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(server.Run(), server.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	return queries, at[2]
}

// spansSent is how many spans send sends.
const spansSent = 4

// send sends a trace whose root starts at the given time and whose spans go on for hours.
func send(t *testing.T, otlp string, id trace.TraceID, at time.Time) trace.TraceID {
	t.Helper()
	spans := make([]string, spansSent)
	for i := range spans { // the root is the first
		start, length, parent := at.Add(time.Duration(i-1)*time.Hour), time.Second, fmt.Sprintf("%016x", 1)
		if i == 0 {
			start, length, parent = at, 3*time.Hour, ""
		}
		spans[i] = fmt.Sprintf(`{"traceId": %q, "spanId": "%016x", "parentSpanId": %q, "name": "work", "startTimeUnixNano": "%d", "endTimeUnixNano": "%d"}`,
			id, i+1, parent, start.UnixNano(), start.Add(length).UnixNano())
	}
	body := `{"resourceSpans": [{"scopeSpans": [{"spans": [` + strings.Join(spans, ",") + `]}]}]}`
	resp, err := http.Post("http://"+otlp+"/v1/traces", "application/json", strings.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	return id
}

// get returns an answer in a form that can be compared: Jaeger does not order the spans.
func get(t *testing.T, tripper http.RoundTripper, address string) (status int, spans []string) {
	t.Helper()
	resp, err := (&http.Client{Transport: tripper}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer any
	if err := json.NewDecoder(resp.Body).Decode(&answer); resp.StatusCode == http.StatusOK && err != nil {
		t.Fatalf("%s: %v", address, err)
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

// recorder records whether the requests that reach the server have a bound.
type recorder struct{ bounded []bool }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.bounded = append(r.bounded, strings.Contains(req.URL.RawQuery, "start"))
	return http.DefaultTransport.RoundTrip(req)
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
	day := now.Add(-24 * time.Hour)
	traces := map[string]trace.TraceID{
		"clock ahead": send(t, otlp, newID(day.Add(8*time.Hour)), day),
		"foreign":     send(t, otlp, trace.TraceID{0xf5, 1, 2, 3, 4, 5, 6, 7, 0xff, 1, 2, 3, 4, 5, 6, 7}, day),
		"64 bits":     send(t, otlp, trace.TraceID{15: 7, 8: 9}, day),
		"absent":      newID(day),
	}
	for _, age := range []time.Duration{4 * time.Hour, 26 * time.Hour, 5 * 24 * time.Hour, 20 * 24 * time.Hour} {
		traces[age.String()] = send(t, otlp, newID(now.Add(-age)), now.Add(-age))
	}
	proxy := "http://" + start(t, child.Build(t, child.Traceflake), nil, "--backend", "jaeger", server).Address
	for _, path := range []string{"/api/v3/traces/", "/api/traces/"} {
		for name, id := range traces {
			// Once: the server refuses times that it cannot read, and the request would be repeated.
			status, spans, bounded := http.StatusOK, spansSent, []bool{true}
			switch name {
			case "foreign", "64 bits":
				bounded = []bool{false}
			case "absent":
				status, spans, bounded = http.StatusNotFound, 0, []bool{true, false}
			}
			var r recorder
			transport, err := lookup.New(lookup.Jaeger, lookup.WithTransport(&r))
			if err != nil {
				t.Fatal(err)
			}
			address := path + id.String()
			plain, want := get(t, http.DefaultTransport, server+address)
			code, got := get(t, transport, server+address)
			proxied, passed := get(t, http.DefaultTransport, proxy+address)
			if plain != status || len(want) != spans || code != status || !slices.Equal(got, want) || proxied != status || !slices.Equal(passed, want) {
				t.Errorf("%s, %s: without a bound %d, %d spans; with it %d, %d; through the proxy %d, %d; want %d, %d",
					path, name, plain, len(want), code, len(got), proxied, len(passed), status, spans)
			}
			if !slices.Equal(r.bounded, bounded) {
				t.Errorf("%s, %s: requests with a bound: %v, want %v", path, name, r.bounded, bounded)
			}
		}
	}
	// Which parameters this server reads: it refuses them if they are not times.
	for path, status := range map[string]int{
		"/api/v3/traces/%s?start_time=x": http.StatusBadRequest,
		"/api/v3/traces/%s?startTime=x":  http.StatusOK, // read by later versions
		"/api/traces/%s?start=x":         http.StatusBadRequest,
	} {
		if got, _ := get(t, http.DefaultTransport, server+fmt.Sprintf(path, traces["26h0m0s"])); got != status {
			t.Errorf("%s: %d, want %d", path, got, status)
		}
	}
}
