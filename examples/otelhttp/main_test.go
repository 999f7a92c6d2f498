package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
)

func TestMain(m *testing.M) {
	if os.Getenv("OTELHTTP_TEST_SERVICE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is one service, a process of its own as in a deployment.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stdout bytes.Buffer
}

func start(t *testing.T, service string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], service, "127.0.0.1:0")}
	p.cmd.Stdout = &p.stdout
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, "TRACEFLAKE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, "OTELHTTP_TEST_SERVICE=yes")
	p.cmd.Env = append(p.cmd.Env, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	var log []byte
	for buffer := make([]byte, 1024); p.url == ""; {
		n, err := stderr.Read(buffer)
		log = append(log, buffer[:n]...)
		if m := regexp.MustCompile(`serves (http://\S+)\n`).FindSubmatch(log); m != nil {
			p.url = string(m[1])
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", service, err, log)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return p
}

// stop ends the service as a deployment does, and returns what it printed.
func (p *process) stop() string {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the service ended with %v", err)
	}
	return p.stdout.String()
}

// collector takes spans over OTLP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
}

type span struct {
	service string
	*tracepb.Span
}

func startCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request coltrace.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range request.ResourceSpans {
			service := ""
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.name" {
					service = a.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans = append(c.spans, span{service, s})
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// chain returns the trace's spans, each the parent of the next, that begin under the given parent,
// and how many others it has.
func (c *collector) chain(id, parent string) (chain []span, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	under := map[string]span{}
	for _, s := range c.spans {
		if trace.TraceID(s.TraceId).String() == id {
			under[hex.EncodeToString(s.ParentSpanId)] = s
			others++
		}
	}
	for s, ok := under[parent]; ok; s, ok = under[hex.EncodeToString(s.SpanId)] {
		chain = append(chain, s)
	}
	return chain, others - len(chain)
}

func get(t *testing.T, url string, headers map[string]string) http.Header {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "ordered\n" {
		t.Fatalf("%s %q: %v", response.Status, body, err)
	}
	return response.Header
}

func TestServices(t *testing.T) {
	collector := startCollector(t)
	file := filepath.Join(t.TempDir(), "leases.db")
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "TRACEFLAKE_STORE=bolt:" + file}
	orders := start(t, "orders", env...)
	shop := start(t, "shop", append(env, "ORDERS_URL="+orders.url)...)

	made, parent := idgen.New().NewIDs(t.Context())
	id, span := made.String(), parent.String()
	other := func(last string) string { // the same but for its first digits
		return last + id[len(last):]
	}
	var checks []func() // for when the services have sent their spans
	const foreign, none = "4bf92f3577b34da6a3ce929d0e0e4736", ""
	for _, c := range []struct {
		name         string
		headers      map[string]string
		want, parent string
		state        string
	}{
		{"W3C", map[string]string{
			"traceparent": "00-" + foreign + "-" + span + "-03", "tracestate": "v=1",
		}, foreign, span, "v=1"},
		{"64-bit B3 and x-trace-id", map[string]string{
			"x-trace-id": id, "b3": id[16:] + "-" + span + "-1",
		}, id, span, ""},
		{"x-trace-id alone", map[string]string{"x-trace-id": other("17")}, other("17"), none, ""},
		{"a gateway's traceparent and the client's x-trace-id", map[string]string{
			"x-trace-id": other("18"), "traceparent": "00-" + foreign + "-" + span + "-01",
		}, other("18"), none, ""},
		{"no headers", nil, "", none, ""},
	} {
		got := get(t, shop.url+"/checkout", c.headers).Get("x-trace-id")
		if c.want != "" && got != c.want {
			t.Errorf("%s: x-trace-id %s, want %s", c.name, got, c.want)
		}
		checks = append(checks, func() {
			names := ""
			chain, others := collector.chain(got, c.parent)
			for _, s := range chain {
				names += " " + s.service + "/" + s.Kind.String()
				if s.TraceState != c.state {
					t.Errorf("%s: %s has tracestate %q, want %q", c.name, s.Name, s.TraceState, c.state)
				}
			}
			const want = " shop/SPAN_KIND_SERVER shop/SPAN_KIND_CLIENT orders/SPAN_KIND_SERVER"
			if names != want || others != 0 {
				t.Errorf("%s: trace %s under %q:%s and %d others, want%s", c.name, got, c.parent, names, others, want)
			}
		})
	}
	response, err := http.Get(orders.url + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if id := response.Header.Get("x-trace-id"); response.StatusCode != http.StatusOK || id != "" {
		t.Errorf("/ready: %s, in trace %q", response.Status, id)
	}
	shop.stop()
	orders.stop()
	for _, check := range checks {
		check()
	}

	checkGivenBack(t, file, 2)
}

// checkGivenBack checks that this many processes held leases and none does any more.
func checkGivenBack(t *testing.T, file string, processes int) {
	t.Helper()
	store, err := boltstore.Open(file, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := store.List(context.Background())
	if err != nil || len(blocks) != processes {
		t.Fatalf("%d services left %d blocks: %v", processes, len(blocks), err)
	}
	for _, b := range blocks {
		if until := time.Until(b.GrantedUntil); until > lease.DefaultTTL/2 {
			t.Errorf("a lease was not given back: it goes on for %s", until)
		}
	}
}

// A collector that does not answer takes the whole time for the end; the lease is given back
// nevertheless, before a deployment kills the process.
func TestCollectorIsStuck(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer collector.Close()
	defer close(release)
	file := filepath.Join(t.TempDir(), "leases.db")
	orders := start(t, "orders", "TRACEFLAKE_STORE=bolt:"+file,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=60000")
	get(t, orders.url+"/orders", nil)
	began := time.Now()
	if err := orders.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = orders.cmd.Wait() // an error: the spans were not sent
	if took := time.Since(began); took < 9*time.Second || took > 14*time.Second {
		t.Errorf("the end took %s", took)
	}
	checkGivenBack(t, file, 1)
}

// An endpoint for metrics does not say where traces go.
func TestPrintsSpansWithoutCollector(t *testing.T) {
	orders := start(t, "orders", "OTEL_SERVICE_NAME=books", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1")
	response, err := http.Get(orders.url + "/orders")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	id := response.Header.Get("x-trace-id")
	if id == "" {
		t.Fatal("no x-trace-id in the response")
	}
	if out := orders.stop(); !strings.Contains(out, id) || !strings.Contains(out, `"Value":"books"`) {
		t.Errorf("no span of %s on stdout:\n%s", id, out)
	}
}

func TestBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		want, variable, value string
		args                  []string
	}{
		{want: "usage: shop ADDRESS"},
		{want: "shop ADDRESS", args: []string{"basket", "127.0.0.1:0"}},
		{want: "missing port", args: []string{"shop", "127.0.0.1"}},
		{want: "address already in use", args: []string{"shop", taken.Addr().String()}},
		{want: "TRACEFLAKE_STORE", args: []string{"orders", "127.0.0.1:0"},
			variable: "TRACEFLAKE_STORE", value: "redis://x"},
		{want: "unknown exporter", args: []string{"orders", "127.0.0.1:0"},
			variable: "OTEL_TRACES_EXPORTER", value: "pigeon"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
