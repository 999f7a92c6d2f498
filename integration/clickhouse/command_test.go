package clickhouse_test

import (
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
	run := func(code int, args string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"clickhouse"}, strings.Fields(args)...)...)
		out, _ := cmd.CombinedOutput() // its exit code is checked
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%q: code %d, want %d\n%s", args, got, code, out)
		}
		return string(out)
	}
	e.adoptable("clickstack.sql")
	e.insert("spans", few())
	fill := strings.NewReplacer("{db}", e.Database(), "{ttl}", moves)
	for _, c := range strings.Split(fill.Replace(read("testdata/command.txt")), "\n\n") {
		args, want, _ := strings.Cut(strings.TrimPrefix(c, "$ "), "\n")
		args, fails := strings.CutSuffix(args, " # fails")
		out := run(map[bool]int{true: 2}[fails], args)
		if out = varies.ReplaceAllString(out, "N"); !strings.Contains(out, want) {
			t.Errorf("%s: %s\nlacks %s", args, out, want)
		}
	}

	// The scripts do the same by hand.
	if err := e.adopts("end", e.db); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"prepare", "swap", "undo", "swap"} {
		before := e.snapshot()
		script := run(0, "adopt "+operation+" --table spans --dry-run")
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
	e.creates(clickhouse.Schema{Table: "spans"})
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "") // a dry run of create needs no server
	if out := run(0, "create --projection all --dry-run"); !strings.Contains(out,
		"PROJECTION by_service") {
		t.Errorf("the dry run omits the projection: %s", out)
	}
}

// varies matches the parts that differ between runs.
var varies = regexp.MustCompile(`\d+\.\d (MiB|days).*`)

var comments = regexp.MustCompile(`(?m)^--.*\n`)
