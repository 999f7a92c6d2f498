package deploy

import (
	"encoding/json"
	"os"
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

// built builds a program, and returns its path.
func built(t *testing.T, program string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	child.Write(t, source, program)
	return child.Build(t, source)
}

// The README's program prints a span whose trace ID has the present time.
func TestQuickStart(t *testing.T) {
	program := child.Blocks(child.Read(t, "README.md"), "go")[1]
	if lines := strings.Count(program, "\n"); lines > 18 {
		t.Errorf("the quick start has %d lines, want at most 18:\n%s", lines, program)
	}
	out := child.Output(t, 0, exec.CommandContext(t.Context(), built(t, program)))
	var printed span
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id, err := trace.TraceIDFromHex(printed.SpanContext.TraceID)
	if age := time.Since(traceid.Time(id)); err != nil || age < -time.Second || age > time.Hour {
		t.Errorf("the trace ID %s is %s old: %v", id, age, err)
	}
}

// After the commands of docs/leases.md, a service of examples/otelhttp holds a lease.
func TestQuickStartWithLeases(t *testing.T) {
	store, traceflake := child.ForTest(t, servers.Postgres).DSN(), child.Build(t, child.Traceflake)
	install, commands, _ := strings.Cut(
		child.Blocks(child.Read(t, "docs/leases.md"), "sh")[0], "\n")
	const shown = "postgres://user:password@host/db"
	if !strings.HasPrefix(install, "go install ") || strings.Count(commands, shown) != 1 {
		t.Fatalf("unexpected commands:\n%s\n%s", install, commands)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", "traceflake() { "+traceflake+
		" \"$@\"; }\n"+strings.Replace(commands, shown, "'"+store+"'", 1)+"\nexec "+
		child.Build(t, example)+" orders 127.0.0.1:0")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), probeVar+"=127.0.0.1:0")
	service := child.Run(t, cmd)
	at := child.Await(t, service, 2, child.Served)
	child.Get(t, at[0])
	list := child.Output(t, 0, exec.CommandContext(t.Context(), traceflake, "lease", "list",
		"--store", store))
	_, metrics := child.Get(t, at[1]+"/metrics")
	if strings.Count(list, "held by") != 1 ||
		!regexp.MustCompile(`(?m)^traceflake_lease_blocks\{.*\} 1$`).MatchString(metrics) {
		t.Errorf("want one lease that is held, and the metric\n%s\n%s\n%s", list, metrics,
			service.Output())
	}
	end(t, service)
}
