package servers_test

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
)

var nothing *servers.Result

// TestGoKeepsItsSignals: left to itself, libchdb takes SIGSEGV, SIGBUS and
// others for its own, and this test ends the process.
func TestGoKeepsItsSignals(t *testing.T) {
	e := servers.ClickHouseForTest(t)
	query(t, e, "SELECT sum(sipHash64(number)) FROM numbers_mt(1000000)")
	if _, err := e.Query(t.Context(), "SELECT throwIf(1)"); err == nil {
		t.Error("throwIf gave no error")
	}

	for _, want := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		got := make(chan os.Signal, 1)
		signal.Notify(got, want)
		if err := syscall.Kill(os.Getpid(), want); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-got:
			if s != want {
				t.Errorf("got %v, want %v", s, want)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%v did not arrive", want)
		}
		signal.Stop(got)
	}

	// SIGSEGV: a nil dereference is a panic that can be recovered.
	var panicked any
	func() {
		defer func() { panicked = recover() }()
		runtime.KeepAlive(nothing.RowsRead)
	}()
	if _, ok := panicked.(runtime.Error); !ok {
		t.Errorf("a nil dereference gave %v, want a runtime error", panicked)
	}

	// SIGBUS: so is a fault at a mapped address beyond the end of its file.
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	page, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { panicked = recover() }()
		panicked = nil
		runtime.KeepAlive(page[0])
	}()
	if panicked == nil {
		t.Error("a read beyond the end of a mapped file gave no panic")
	}

	// The engine works on after all of it.
	query(t, e, "SELECT 1")
}
