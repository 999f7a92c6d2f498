package tracing

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// The demo starts two services, and the ID of its request was generated under a lease.
func TestDemo(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), child.Repository+"/examples/demo.sh")
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`x-trace-id: [0-9a-f]{32}\n(?s:.*)`+
		`traceflake trace ID .*  verified, .*halves agree`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}
