package clickhouse_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/compare"
)

// TestCompareInterrupted interrupts a comparison at different statements: it leaves nothing.
func TestCompareInterrupted(t *testing.T) {
	e := newEngine(t)
	if strings.HasPrefix(e.one("SELECT version()"), "26.3.") {
		t.Skip("DROP TABLE … SYNC never ends in this engine without a server")
	}
	e.run(collectorTable("spans"), nil)
	e.insert("spans", few())
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
		copies, err := compare.Look(ctx, db, ofSpans, 1)
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

// TestCompareSignal: the command that is interrupted waits until its tables are dropped.
func TestCompareSignal(t *testing.T) {
	e := newEngine(t)
	if strings.HasPrefix(e.one("SELECT version()"), "26.3.") {
		t.Skip("DROP TABLE … SYNC never ends in this engine without a server")
	}
	e.run(collectorTable("spans"), nil)
	e.exec("INSERT INTO spans (Timestamp, TraceId) VALUES (now64(9), 'a')")
	before := e.snapshot()
	var cmd *exec.Cmd
	var interrupted, dropping atomic.Bool
	dsn := e.through(func(statement string) string {
		switch {
		case strings.HasPrefix(statement, "INSERT INTO") &&
			interrupted.CompareAndSwap(false, true):
			_ = cmd.Process.Signal(os.Interrupt)
		case strings.HasPrefix(statement, "DROP TABLE") && interrupted.Load() &&
			dropping.CompareAndSwap(false, true):
			time.Sleep(2 * time.Second)
		}
		return settled.Replace(statement)
	})
	cmd = exec.Command(child.Build(t, child.Traceflake), "clickhouse", "compare", "--yes",
		"--table=spans", "--dsn="+dsn)
	out, err := cmd.CombinedOutput()
	if after := e.snapshot(); err == nil || !dropping.Load() || after != before {
		t.Errorf("%v: the tables are %s, and were %s\n%s", err, after, before, out)
	}
}
