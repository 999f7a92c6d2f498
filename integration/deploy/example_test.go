package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/traceid"
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

// run builds a program and starts it after some commands.
func run(t *testing.T, program, commands string) (metrics string, p *child.Server) {
	t.Helper()
	at, err := child.Addresses(2)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	program = strings.NewReplacer("127.0.0.1:8080", at[0], "127.0.0.1:9464", at[1]).Replace(program)
	child.Write(t, source, program)
	cmd := exec.CommandContext(t.Context(), "bash", "-ec",
		commands+"\nexec "+child.Build(t, source))
	cmd.Dir = t.TempDir()
	p = child.Run(t, cmd)
	p.Address, p.Answers = at[0], p.Listens
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return at[1], p
}

// The README's program prints a span whose trace ID has the present time.
func TestQuickStart(t *testing.T) {
	program := child.Blocks(child.Read(t, "README.md"), "go")[1]
	if lines := strings.Count(program, "\n"); lines > 18 {
		t.Errorf("the quick start has %d lines, want at most 18:\n%s", lines, program)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	child.Write(t, source, program)
	out := child.Output(t, 0, exec.CommandContext(t.Context(), child.Build(t, source)))
	var printed struct{ SpanContext struct{ TraceID string } }
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id, err := trace.TraceIDFromHex(printed.SpanContext.TraceID)
	if age := time.Since(traceid.Time(id)); err != nil || age < -time.Second || age > time.Hour {
		t.Errorf("the trace ID %s is %s old: %v", id, age, err)
	}
}

// After the commands of docs/leases.md, the program of examples/otelhttp/quickstart holds a lease.
func TestQuickStartWithLeases(t *testing.T) {
	program := child.Read(t, "examples/otelhttp/quickstart/main.go")
	page := child.Read(t, "docs/leases.md")
	install, commands, _ := strings.Cut(child.Blocks(page, "sh")[0], "\n")
	const shown = "postgres://user:password@host/db"
	if !strings.HasPrefix(install, "go install ") || strings.Count(commands, shown) != 1 {
		t.Fatalf("unexpected commands:\n%s\n%s", install, commands)
	}
	store, traceflake := child.ForTest(t, servers.Postgres).DSN(), child.Build(t, child.Traceflake)
	metrics, service := run(t, program, "traceflake() { "+traceflake+" \"$@\"; }\n"+
		strings.Replace(commands, shown, "'"+store+"'", 1))
	child.Get(t, "http://"+service.Address)
	list := child.Output(t, 0, exec.CommandContext(t.Context(), traceflake, "lease", "list",
		"--store", store))
	if strings.Count(list, "held by") != 1 {
		t.Errorf("want one lease that is held\n%s\n%s", list, service.Output())
	}
	_, text := child.Get(t, "http://"+metrics+"/metrics")
	if !regexp.MustCompile(`(?m)^traceflake_lease_blocks\{.*\} 1$`).MatchString(text) {
		t.Errorf("the metrics do not show the lease:\n%s", text)
	}
	end(t, service)
}
