package servers_test

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
)

var nothing *servers.Result

// TestGoKeepsItsSignals: left to itself, libchdb takes SIGSEGV and others for its own, and this test
// ends the process.
func TestGoKeepsItsSignals(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	e.Rows(t, "SELECT sum(sipHash64(number)) FROM numbers_mt(1000000)")
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM)
	defer signal.Stop(got)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-got:
	case <-time.After(10 * time.Second):
		t.Error("SIGTERM did not arrive")
	}
	var panicked any
	func() {
		defer func() { panicked = recover() }()
		runtime.KeepAlive(nothing.RowsRead)
	}()
	if _, ok := panicked.(runtime.Error); !ok {
		t.Errorf("a nil dereference gave %v, want a runtime error", panicked)
	}
	e.Rows(t, "SELECT 1") // the engine works on
}
