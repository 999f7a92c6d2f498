package clickhouse_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/compare"
)

// adoptableSpans creates the exporter's table with spans of the last two hours, and columns and
// settings of its own.
func (e *engine) adoptableSpans(spans int) {
	e.t.Helper()
	if strings.HasPrefix(e.one("SELECT version()"), "26.3.") {
		e.t.Skip("DROP TABLE … SYNC never ends in this engine without a server")
	}
	e.run(collectorTable("spans"), nil)
	e.exec("ALTER TABLE spans ADD COLUMN `own ``column` String MATERIALIZED upper(SpanName), " +
		"MODIFY SETTING min_bytes_for_wide_part = 1000")
	e.exec(`INSERT INTO spans (Timestamp, TraceId, SpanId, ParentSpanId, ServiceName, SpanName,
		SpanKind, SpanAttributes, Duration, StatusCode)
		SELECT now64(9) - toIntervalMillisecond(number * 7000000 / ` + strconv.Itoa(spans) + `),
		lower(hex(sipHash128(intDiv(number, 10)))), lower(hex(sipHash64(number, 3))),
		if(number % 10 = 0, '', 'x'), concat('it\\''s ', toString(intHash32(number) % 25)),
		concat('GET ', toString(intHash32(number * 31) % 8)), 'Server',
		map('user.id', toString(intHash32(number * 3) % 100)), intHash32(number * 7) % 900000000,
		if(intHash32(number * 5) % 50 = 0, 'Error', 'Unset') FROM numbers(` +
		strconv.Itoa(spans) + `)`)
}

var ofScratch = clickhouse.Adoption{Table: "spans"}

// TestCompare: the command asks before it writes, prints what both tables read, and leaves the
// database as it was, also if it is interrupted.
func TestCompare(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	e.adoptableSpans(50_000)
	e.creates(clickhouse.Schema{Table: "ours"})
	before := e.snapshot()
	command := func(stdin string, args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"clickhouse", "compare",
			"--table", "spans", "--dsn", e.DSN()}, args...)...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
		return cmd, &out
	}
	for _, c := range []struct{ stdin, args, want string }{
		{"", "--dry-run", "50000 spans of spans from "},
		{"", "--hours=2", "nothing was written"},
		{"n\n", "--hours=2", "nothing was written"},
		{"", "--hours=0", "--hours is at least 1"},
		{"", "--table=absent", "absent"},
		{"", "--table=ours", "the table has the layout"},
		{"y\n", "--hours=2", "| a service: p99 a minute, 2 h "},
	} {
		cmd, out := command(c.stdin, c.args)
		_ = cmd.Run() // its output is checked
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s with %q: %s\nlacks %s", c.args, c.stdin, out, c.want)
		}
		if after := e.snapshot(); after != before {
			t.Fatalf("%s with %q: the tables are %s, and were %s", c.args, c.stdin, after, before)
		}
		if c.stdin == "y\n" { // our table reads less of a trace
			m := regexp.MustCompile(`(?m)^\| TraceId = x .* \((0\.\d+)\) *\|$`).
				FindStringSubmatch(out.String())
			if share, _ := strconv.ParseFloat(append(m, "", "9")[1], 64); m == nil || share > 0.9 {
				t.Errorf("a trace reads %v of the other table", m)
			}
			t.Logf("\n%s", out)
		}
	}

	cmd, out := command("", "--yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for e.one("SELECT count() FROM system.tables WHERE database = currentDatabase() AND "+
		"name LIKE '%\\\\_other'") == "0" {
		if len(ended) > 0 {
			t.Fatalf("it ended by itself: %v\n%s", <-ended, out)
		}
	}
	if err := cmd.Process.Signal(os.Signal(syscall.SIGINT)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Errorf("an interrupted comparison succeeds: %s", out)
	}
	if after := e.snapshot(); after != before {
		t.Errorf("after SIGINT the tables are %s, and were %s", after, before)
	}
}

// TestCompareInterrupted interrupts a comparison at different statements.
func TestCompareInterrupted(t *testing.T) {
	e := newEngine(t)
	e.adoptableSpans(2000)
	before := e.snapshot()
	for at := 1; ; at++ {
		ctx, interrupt := context.WithCancel(t.Context())
		statements := 0
		db := e.rewriting("", func(query string) string {
			if statements++; statements == at {
				interrupt()
			}
			return settled.Replace(query)
		})
		copies, err := compare.Look(ctx, db, ofScratch, 1)
		var tables []compare.Table
		if err == nil {
			tables, err = copies.Run(ctx)
		}
		if after := e.snapshot(); after != before {
			t.Fatalf("interrupted at %d: the tables are %s, and were %s (%v)", at, after, before,
				err)
		}
		interrupt()
		if statements < at {
			if err != nil || len(tables) != 2 {
				t.Fatalf("without an interruption: %d tables, %v", len(tables), err)
			}
			if at < 20 {
				t.Errorf("only %d statements", statements)
			}
			e.fails("SELECT traceIDSeq('')", "UNKNOWN_FUNCTION")
			return
		}
		at += at / 2 // many copy spans or ask questions
	}
}
