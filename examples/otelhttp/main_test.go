package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	lines := bufio.NewScanner(stderr)
	for _, url := range []*string{&p.url, &p.probes} {
		if !lines.Scan() {
			t.Fatalf("%s does not serve: %v", service, lines.Err())
		}
		_, *url, _ = strings.Cut(lines.Text(), " serves ")
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

func get(t *testing.T, url string, headers map[string]string) (header http.Header, text string) {
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
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %q: %v", response.Status, body, err)
	}
	return response.Header, string(body)
}

// Without an endpoint for traces the services print their spans; one for metrics is none.
func TestServices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases.db")
	variable := "TRACEFLAKE_STORE=bolt:" + file
	orders := start(t, "orders", variable, "OTEL_SERVICE_NAME=books", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1")
	shop := start(t, "shop", variable, "ORDERS_URL="+orders.url)

	made, parent := idgen.New().NewIDs(t.Context())
	id, caller := made.String(), parent.String()
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
			"traceparent": "00-" + foreign + "-" + caller + "-03", "tracestate": "v=1",
		}, foreign, caller, "v=1"},
		{"64-bit B3 and x-trace-id", map[string]string{
			"x-trace-id": id, "b3": id[16:] + "-" + caller + "-1",
		}, id, caller, ""},
		{"x-trace-id alone", map[string]string{"x-trace-id": other("17")}, other("17"), none, ""},
		{"a gateway's traceparent and the client's x-trace-id", map[string]string{
			"x-trace-id": other("18"), "traceparent": "00-" + foreign + "-" + caller + "-01",
		}, other("18"), none, ""},
		{"no headers", nil, "", none, ""},
	}
	for i, c := range cases {
		header, text := get(t, shop.url+"/checkout", c.headers)
		got := header.Get("x-trace-id")
		if c.want != "" && got != c.want || got == "" || text != "ordered\n" {
			t.Errorf("%s: %q, x-trace-id %q, want %s", c.name, text, got, c.want)
		}
		cases[i].want = got
	}
	// The reason for not being ready is not for the outside.
	for url, want := range map[string]string{orders.url + "/ready": "ordered\n", orders.probes: "ready\n"} {
		if _, text := get(t, url, nil); text != want {
			t.Errorf("%s: %q, want %q", url, text, want)
		}
	}
	spans := append(shop.stop(), orders.stop()...)
	for _, c := range cases {
		parent := c.parent
		for _, name := range []string{"shop server", "shop client", "books server"} {
			i := slices.IndexFunc(spans, func(s span) bool {
				return s.String() == name+" "+c.state && s.SpanContext.TraceID == c.want && s.Parent.SpanID == parent
			})
			if i < 0 {
				t.Fatalf("%s: no span %s of the trace %s under %s in %v", c.name, name, c.want, parent, spans)
			}
			parent = spans[i].SpanContext.SpanID
			spans = slices.Delete(spans, i, i+1)
		}
	}
	if len(spans) != 1 { // that of /ready at orders
		t.Errorf("other spans: %v, want one", spans)
	}
	store, err := boltstore.New(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := store.List(t.Context())
	if err != nil || len(blocks) != 2 {
		t.Fatalf("two services left %d blocks: %v", len(blocks), err)
	}
	for _, b := range blocks {
		if until := time.Until(b.End); until > lease.DefaultTTL/2 {
			t.Errorf("a lease was not given back: it goes on for %s", until)
		}
	}
}
