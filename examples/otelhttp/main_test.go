package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
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
	probes string
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
	p.cmd.Env = append(p.cmd.Env, "OTELHTTP_TEST_SERVICE=yes", "PROBE_ADDRESS=127.0.0.1:0")
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
		if m := regexp.MustCompile(`serves (http://\S+)\n.*serves (http://\S+)/ready\n`).FindSubmatch(log); m != nil {
			p.url, p.probes = string(m[1]), string(m[2])
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", service, err, log)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return p
}

// stop ends the service as a deployment does, and returns the spans that it printed.
func (p *process) stop() (spans []span) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the service ended with %v", err)
	}
	for d := json.NewDecoder(&p.stdout); d.More(); {
		var s span
		if err := d.Decode(&s); err != nil {
			p.t.Fatal(err)
		}
		spans = append(spans, s)
	}
	return spans
}

// span is a span as a service prints it.
type span struct {
	SpanContext, Parent struct{ TraceID, SpanID, TraceState string }
	SpanKind            trace.SpanKind
	Resource            []struct {
		Key   string
		Value struct{ Value any }
	}
}

func (s span) String() (text string) {
	for _, a := range s.Resource {
		if a.Key == "service.name" {
			text = fmt.Sprint(a.Value.Value)
		}
	}
	return text + " " + s.SpanKind.String() + " " + s.SpanContext.TraceState
}

// chain returns the trace's spans, each the parent of the next, that begin under the given parent,
// and how many others it has.
func chain(spans []span, id, parent string) (chain []span, others int) {
	under := map[string]span{}
	for _, s := range spans {
		if s.SpanContext.TraceID == id {
			under[s.Parent.SpanID] = s
			others++
		}
	}
	for s, ok := under[parent]; ok; s, ok = under[s.SpanContext.SpanID] {
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

// Without an endpoint for traces the services print their spans; one for metrics is none.
func TestServices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.db")
	store := "TRACEFLAKE_STORE=bolt:" + file
	orders := start(t, "orders", store, "OTEL_SERVICE_NAME=books", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1")
	shop := start(t, "shop", store, "ORDERS_URL="+orders.url)

	made, parent := idgen.New().NewIDs(t.Context())
	id, span := made.String(), parent.String()
	other := func(last string) string { // the same but for its first digits
		return last + id[len(last):]
	}
	const foreign, none = "4bf92f3577b34da6a3ce929d0e0e4736", "0000000000000000"
	cases := []struct {
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
	}
	for i, c := range cases {
		got := get(t, shop.url+"/checkout", c.headers).Get("x-trace-id")
		if c.want != "" && got != c.want || got == "" {
			t.Errorf("%s: x-trace-id %q, want %s", c.name, got, c.want)
		}
		cases[i].want = got
	}
	// The reason for not being ready is not for the outside.
	for url, text := range map[string]string{orders.url: "ordered\n", orders.probes: "ready\n"} {
		response, err := http.Get(url + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || string(body) != text {
			t.Errorf("%s/ready: %s %q, %v", url, response.Status, body, err)
		}
	}
	spans := append(shop.stop(), orders.stop()...)
	for _, c := range cases {
		chain, others := chain(spans, c.want, c.parent)
		want := fmt.Sprintf("[shop server %[1]s shop client %[1]s books server %[1]s]", c.state)
		if got := fmt.Sprint(chain); got != want || others != 0 {
			t.Errorf("%s: trace %s under %s: %s and %d others, want %s", c.name, c.want, c.parent, got, others, want)
		}
	}
	checkGivenBack(t, file, 2)
}

// checkGivenBack checks that this many processes held leases and none does any more.
func checkGivenBack(t *testing.T, file string, processes int) {
	t.Helper()
	store, err := boltstore.New(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := store.List(context.Background())
	if err != nil || len(blocks) != processes {
		t.Fatalf("%d services left %d blocks: %v", processes, len(blocks), err)
	}
	for _, b := range blocks {
		if until := time.Until(b.End); until > lease.DefaultTTL/2 {
			t.Errorf("a lease was not given back: it goes on for %s", until)
		}
	}
}

// A collector that does not answer takes the whole time for the end; the lease is given back
// nevertheless, before a deployment kills the process.
func TestCollectorIsStuck(t *testing.T) {
	t.Parallel()
	release, sent := make(chan struct{}), make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent <- r.URL.Path
		<-release
	}))
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
	if len(sent) == 0 || <-sent != "/v1/traces" {
		t.Error("the collector was not sent the spans")
	}
	checkGivenBack(t, file, 1)
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
