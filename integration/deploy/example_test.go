package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

const (
	// example is the package of the example services.
	example = "github.com/traceflake/traceflake/examples/otelhttp"
	// probeVar is the variable with the address at which they serve /ready and /metrics.
	probeVar = "PROBE_ADDRESS"
)

// span is a span as a service prints it.
type span struct {
	SpanContext, Parent struct{ TraceID, SpanID, TraceState string }
	SpanKind            trace.SpanKind
	Links               []struct{ SpanContext struct{ TraceID string } }
	Resource            attributes
	Attributes          attributes
}

type attributes []struct {
	Key   string
	Value struct{ Value any }
}

// get returns the text of a value.
func (all attributes) get(key string) string {
	for _, a := range all {
		if a.Key == key {
			return fmt.Sprint(a.Value.Value)
		}
	}
	return ""
}

func (s span) String() string {
	return s.Resource.get("service.name") + " " + s.SpanKind.String() + " " +
		s.SpanContext.TraceState
}

// printed ends a service and returns the spans that it printed.
func printed(t *testing.T, p *child.Server) (spans []span) {
	t.Helper()
	end(t, p)
	for line := range strings.Lines(p.Output()) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var s span
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		spans = append(spans, s)
	}
	return spans
}

// The example services continue traces by the table in examples/otelhttp/README.md. Without an
// endpoint for traces they print their spans, even if there is one for metrics.
func TestHeaders(t *testing.T) {
	program := child.Build(t, example)
	serve := func(name string, env ...string) (p *child.Server, urls []string) {
		cmd := exec.CommandContext(t.Context(), program, name, "127.0.0.1:0")
		cmd.Env = append([]string{probeVar + "=127.0.0.1:0"}, env...)
		p = child.Run(t, cmd)
		return p, child.Await(t, p, 2, child.Served)
	}
	orders, at := serve("orders", "OTEL_SERVICE_NAME=books",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1")
	shop, urls := serve("shop", "ORDERS_URL="+at[0])
	// The reason for not being ready is not shown outside.
	if _, text := child.Get(t, at[1]+"/metrics"); !strings.Contains(text,
		"\ntraceflake_id_fallbacks_total{") {
		t.Errorf("metrics:\n%s", text)
	}
	for url, want := range map[string]string{at[0] + "/ready": "ordered\n",
		at[1] + "/ready": "ready\n"} {
		if _, text := child.Get(t, url); text != want {
			t.Errorf("%s: %q, want %q", url, text, want)
		}
	}

	made, parent := idgen.New().NewIDs(t.Context())
	id, caller := made.String(), parent.String()
	const foreign, none = "4bf92f3577b34da6a3ce929d0e0e4736", "0000000000000000"
	cases := []struct {
		name                string
		headers             []string
		want, parent, state string
	}{
		{"W3C", []string{"traceparent", "00-" + foreign + "-" + caller + "-03", "tracestate",
			"v=1"}, foreign, caller, "v=1"},
		{"64-bit B3 and x-trace-id",
			[]string{"x-trace-id", id, "b3", id[16:] + "-" + caller + "-1"}, id, caller, ""},
		{"x-trace-id alone", []string{"x-trace-id", "17" + id[2:]}, "17" + id[2:], none, ""},
		{"a gateway's traceparent and the client's x-trace-id",
			[]string{"x-trace-id", "18" + id[2:], "traceparent", "00-" + foreign + "-" + caller +
				"-01"}, "18" + id[2:], none, ""},
		{"no headers", nil, "", none, ""},
	}
	for i, c := range cases {
		header, text := child.Get(t, urls[0]+"/checkout", c.headers...)
		got := header.Get("x-trace-id")
		if c.want != "" && got != c.want || got == "" || text != "ordered\n" {
			t.Errorf("%s: %q, x-trace-id %q, want %s", c.name, text, got, c.want)
		}
		cases[i].want = got
	}
	spans := append(printed(t, shop), printed(t, orders)...)
	for _, c := range cases {
		parent := c.parent
		for _, name := range []string{"shop server", "shop client", "books server"} {
			i := slices.IndexFunc(spans, func(s span) bool {
				return s.String() == name+" "+c.state && s.SpanContext.TraceID == c.want &&
					s.Parent.SpanID == parent
			})
			if i < 0 {
				t.Fatalf("%s: no span %s of the trace %s under %s in %v", c.name, name, c.want,
					parent, spans)
			}
			parent = spans[i].SpanContext.SpanID
			spans = slices.Delete(spans, i, i+1)
		}
	}
	if len(spans) != 1 { // that of /ready at orders
		t.Errorf("other spans: %v, want one", spans)
	}
}

// run builds the README's program and starts it after some commands.
func run(t *testing.T, program, commands string) (binary, metrics string, p *child.Server) {
	t.Helper()
	at, err := child.Addresses(2)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	program = strings.NewReplacer("127.0.0.1:8080", at[0], "127.0.0.1:9464", at[1]).Replace(program)
	child.Write(t, source, program)
	binary = child.Build(t, source)
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", commands+"\nexec "+binary)
	cmd.Dir = t.TempDir()
	p = child.Run(t, cmd)
	p.Address, p.Answers = at[0], p.Listens
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return binary, at[1], p
}

// The README's program prints the span of a request. If the port is taken, it says so and ends.
func TestQuickStart(t *testing.T) {
	program := child.Blocks(child.Read(t, "README.md"), "go")[1]
	if lines := strings.Count(program, "\n"); lines > 36 {
		t.Errorf("the quick start has %d lines, want at most 36:\n%s", lines, program)
	}
	binary, _, service := run(t, program, "")
	header, _ := child.Get(t, "http://"+service.Address)
	second := child.Output(t, 0, exec.CommandContext(t.Context(), binary))
	if !strings.Contains(second, "address already in use") {
		t.Errorf("the port is taken: %s", second)
	}
	end(t, service)
	id, out := header.Get("x-trace-id"), service.Output()
	if id == "" || !strings.Contains(out, `"TraceID":"`+id+`"`) {
		t.Errorf("the response has the trace ID %q; the spans are\n%s", id, out)
	}
}

// patched returns a program with the changes of a diff without line numbers.
func patched(t *testing.T, program, diff string) string {
	t.Helper()
	var before, after string
	for line := range strings.Lines(diff) {
		if line[0] != '+' {
			before += line[1:]
		}
		if line[0] != '-' {
			after += line[1:]
		}
	}
	if strings.Count(program, before) != 1 {
		t.Fatalf("the program does not have these lines:\n%s", before)
	}
	return strings.Replace(program, before, after, 1)
}

// With the changes that the README shows for leases, and after its commands, the program holds a
// lease while it runs, and has given it back after SIGTERM.
func TestQuickStartWithLeases(t *testing.T) {
	readme := child.Read(t, "README.md")
	_, leases, ok := strings.Cut(readme, "\n### 4. Leases\n")
	leases, _, _ = strings.Cut(leases, "\n## ")
	program := child.Blocks(readme, "go")[1]
	for _, diff := range child.Blocks(leases, "diff") {
		program = patched(t, program, diff)
	}
	install, commands, _ := strings.Cut(child.Blocks(leases, "sh")[0], "\n")
	const shown = "postgres://user:password@host/db"
	if !ok || !strings.HasPrefix(install, "go install ") || strings.Count(commands, shown) != 1 {
		t.Fatalf("unexpected commands:\n%s\n%s", install, commands)
	}
	store, traceflake := child.ForTest(t, servers.Postgres).DSN(), child.Build(t, child.Traceflake)
	_, metrics, service := run(t, program, "traceflake() { "+traceflake+" \"$@\"; }\n"+
		strings.Replace(commands, shown, "'"+store+"'", 1))
	held := func(want int) {
		t.Helper()
		list := child.Output(t, 0, exec.CommandContext(t.Context(), traceflake, "lease", "list",
			"--store", store))
		if strings.Count(list, "held by") != want {
			t.Errorf("want %d leases that are held\n%s\n%s", want, list, service.Output())
		}
	}
	child.Get(t, "http://"+service.Address)
	held(1)
	_, text := child.Get(t, "http://"+metrics+"/metrics")
	if !regexp.MustCompile(`(?m)^traceflake_lease_blocks\{.*\} 1$`).MatchString(text) {
		t.Errorf("the metrics do not show the lease:\n%s", text)
	}
	end(t, service)
	held(0)
}
