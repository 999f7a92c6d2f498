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
	db := e.Database()
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
	for _, c := range []struct {
		code       int
		args, says string
	}{
		{0, "create --table fresh --ttl 720h", "the functions on trace IDs exist\nfresh exists\n"},
		{0, "create --table fresh --ttl 48h",
			"spans of fresh are kept for 48h0m0s\n  to undo this: ALTER TABLE"},
		{2, "create --table spans", "traceflake: clickhouse: table spans has another shape; it " +
			"was not changed: adopt it or choose another name\n"},
		{0, "adopt prepare --table spans",
			"spans_all_trace_id_ts when their traces began and ended\n  to undo this: DROP VIEW"},
		{0, "status --table spans", db + ".spans\n  sorted by       ServiceName, SpanName, " +
			"toDateTime(Timestamp)\n  engine          MergeTree\n  TTL             " + moves +
			"\n  storage policy  tiered\n  spans           300, N\n  ordered IDs     45.7 % of " +
			"300 spans of the newest partition\n  last expires    in N\n  read by         " +
			db + ".rollup_mv, " + db + ".spans_all, " + db + ".spans_trace_id_ts_mv\n" + db +
			".spans_other, the new table of an adoption\n  sorted by       " +
			"toStartOfFiveMinutes(Timestamp), TraceId, Timestamp\n" +
			"  engine          MergeTree\n  TTL             " + moves +
			"\n  storage policy  tiered\n  spans           0\n  ordered IDs     no spans\n  last " +
			"expires    never\n  read by         " + db +
			".spans_all\nthe adoption is prepared; next: `adopt swap`, or `adopt cancel`\n"},
		{0, "adopt swap --table spans", "the new table has the name spans"},
		{2, "adopt finish --table spans", "still holds 300 spans: wait until they have expired " +
			"(status says when), move them with `adopt copy`, or drop them with --drop-history"},
		{0, "adopt undo --table spans", "note: spans_other keeps the spans"},
		{0, "adopt undo --table spans", "the adoption is prepared; next: `adopt swap`"},
		{0, "adopt cancel --table spans", "the table spans_other is gone"},
		{0, "adopt cancel --table spans",
			"nothing is left to do\nthe adoption is not begun; next: `adopt prepare`\n"},
	} {
		if out := varies.ReplaceAllString(run(c.code, c.args), "N"); !strings.Contains(out,
			c.says) {
			t.Errorf("%s: %s\nlacks %s", c.args, out, c.says)
		}
	}

	// The scripts do the same by hand.
	for _, operation := range []string{"prepare", "swap", "undo", "swap", "finish --drop-history"} {
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
