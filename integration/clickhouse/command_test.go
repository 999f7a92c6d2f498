package clickhouse_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestCommand runs `traceflake clickhouse` as an operator does.
func TestCommand(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", e.DSN())
	run := func(code int, args ...string) (out, errOut string) {
		t.Helper()
		cmd := exec.Command(path, append([]string{"clickhouse"}, args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // its exit code is checked
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%q: code %d, want %d\n%s%s", args, got, code, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	says := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) || strings.Contains(text, "SELECT throwIf") {
			t.Errorf("%s\nlacks %s, or has SQL", text, want)
		}
	}
	out, _ := run(0, "create", "--table", "fresh", "--ttl", "720h")
	says(out, "the functions on trace IDs exist\nfresh exists\n")
	out, _ = run(0, "create", "--table", "fresh", "--ttl", "48h")
	says(out, "spans of fresh are kept for 48h0m0s\n  to undo this: ALTER TABLE")
	_, message := run(2, "create", "--table", "fresher", "--logs", "nothere")
	says(message, "there is no table nothere with")
	e.run(collectorTable("overlaid"), nil)
	for _, connected := range []string{"", e.DSN()} {
		t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", connected)
		out, _ = run(0, "create", "--overlay", "--table", "overlaid", "--materialize", "--dry-run")
		if !strings.Contains(out, "MATERIALIZE INDEX idx_trace_id_range") {
			t.Errorf("the dry run omits the materialization: %s", out)
		}
	}

	e.adoptable("clickstack.sql")
	e.insert("spans", few())
	_, message = run(2, "create", "--table", "spans")
	says(message, "traceflake: clickhouse: table spans has another shape and was left as it is: adopt it or choose another name\n")
	out, _ = run(0, "adopt", "prepare", "--table", "spans")
	says(out, "the view spans_all shows the spans of both tables\n  to undo this: DROP VIEW")
	out, _ = run(0, "status", "--table", "spans")
	says(out, ".spans_other, the new table of an adoption\n  sorted by       toStartOfInterval(")
	run(0, "adopt", "swap", "--table", "spans")
	_, message = run(2, "adopt", "finish", "--table", "spans")
	says(message, "still holds 300 spans: wait until they have expired (status says when), or drop them with --drop-history")
	out, _ = run(0, "adopt", "undo", "--table", "spans")
	says(out, "note: spans_other keeps the spans")
	run(0, "adopt", "undo", "--table", "spans")
	out, _ = run(0, "adopt", "undo", "--table", "spans")
	says(out, "nothing is left to do")

	// The scripts do the same by hand.
	for _, operation := range [][]string{{"prepare"}, {"swap"}, {"undo"}, {"swap"}, {"finish", "--drop-history"}} {
		before := e.snapshot()
		script, _ := run(0, append(append([]string{"adopt"}, operation...), "--table", "spans", "--dry-run")...)
		if after := e.snapshot(); after != before {
			t.Fatalf("a dry run changed %s to %s", before, after)
		}
		for statement := range strings.SplitSeq(comments.ReplaceAllString(script, ""), ";\n") {
			if strings.TrimSpace(statement) != "" {
				e.exec(statement)
			}
		}
	}
	e.is("0", "SELECT count() FROM spans")
	e.creates(clickhouse.Schema{Table: "spans", KeepLookup: true})
}

var comments = regexp.MustCompile(`(?m)^--.*\n`)
