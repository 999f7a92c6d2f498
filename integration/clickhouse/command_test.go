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
		{0, "create --table fresh --ttl 720h", "-- fresh exists\nCREATE TABLE IF NOT EXISTS"},
		{0, "create --table fresh --ttl 48h", "-- spans of fresh are kept for 48h0m0s; the TTL " +
			"was \"toDateTime(Timestamp) + toIntervalSecond(2592000)\"\nALTER TABLE"},
		{2, "create --table spans", "traceflake: clickhouse: table spans has another shape; it " +
			"was not changed: adopt it or choose another name\n"},
		{0, "adopt prepare --table spans", "-- A view of the spans of both tables, and one of " +
			"their times, by the name that tools look for.\nCREATE OR REPLACE VIEW"},
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
			".spans_all\nthe adoption is prepared; next: `adopt swap`. " +
			"To cancel instead:\nDROP VIEW"},
		{0, "adopt swap --table spans", "-- The new table gets the name, unless it has it " +
			"already.\nSELECT throwIf("},
		{0, "adopt undo --table spans", "-- next: `adopt swap`. To cancel instead:\n-- DROP VIEW"},
	} {
		if out := varies.ReplaceAllString(run(c.code, c.args), "N"); !strings.Contains(out,
			c.says) {
			t.Errorf("%s: %s\nlacks %s", c.args, out, c.says)
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
