package clickhouse_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

// TestCommand runs `traceflake clickhouse` as an operator does.
func TestCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "traceflake")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/traceflake/traceflake/cmd/traceflake").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e := newEngine(t)
	run := func(code int, args ...string) (out, errOut string) {
		t.Helper()
		cmd := exec.Command(path, append([]string{"clickhouse"}, args...)...)
		cmd.Env = append(os.Environ(), "TRACEFLAKE_CLICKHOUSE_DSN="+e.DSN())
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // its code tells
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%q: code %d, want %d\n%s%s", args, got, code, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	run(0, "create", "--table", "fresh", "--ttl", "720h")

	old := few()
	e.template(old)
	e.exporterTable("spans")
	if _, message := run(2, "create", "--table", "spans"); !strings.Contains(message, "has another shape") || !strings.Contains(message, "migrate it") {
		t.Errorf("create over the exporter's table: %s", message)
	}
	e.exec("CREATE TABLE spans_copy AS template")
	if _, message := run(2, "migrate", "--table", "spans"); !strings.Contains(message, "spans_copy exists and does not belong to this migration") {
		t.Errorf("with a table in the way: %s", message)
	}
	e.exec("DROP TABLE spans_copy SYNC")
	if _, bar := run(0, "migrate", "--table", "spans"); !strings.Contains(bar, "100 %  300 of 300 spans, partition 20261014") {
		t.Errorf("progress\n%s", bar)
	}
	e.holds("spans", ids(old))

	// The script does the same by hand.
	e.exporterTable("by_hand")
	script, _ := run(0, "migrate", "--table", "by_hand", "--dry-run")
	for statement := range strings.SplitSeq(strings.TrimSuffix(script, ";\n"), ";\n\n") {
		e.exec(statement)
	}
	e.holds("by_hand", ids(old))
	e.run(clickhouse.Schema{Table: "by_hand"}.Statements())
}
