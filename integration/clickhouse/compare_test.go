package clickhouse_test

import (
	"context"
	"strings"
	"testing"

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
