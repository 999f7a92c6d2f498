//go:build unix

package idgen

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// After SIGSTOP and SIGCONT, a process makes IDs with the present time.
func TestSIGSTOP(t *testing.T) {
	if os.Getenv("TRACEFLAKE_TEST_STOPPED") != "" {
		g := New()
		for start := time.Now(); time.Since(start) < 2*time.Second; {
			if err := outside(g, time.Millisecond, (trusted+1)*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSIGSTOP$", "-test.v")
	child.Env = append(os.Environ(), "TRACEFLAKE_TEST_STOPPED=1")
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	if err := child.Start(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("an emulated process cannot start another: " + err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		time.Sleep(100 * time.Millisecond)
		stop := time.Now()
		if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		t.Logf("stopped for %v", time.Since(stop))
	}
	if err := child.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS") {
		t.Errorf("%v: %s", err, out.String())
	}
}
