//go:build unix

package idgen

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

// A process that was really stopped is never late by more than a quarter of a millisecond, in
// addition to the rounding, and repeats nothing. Its parent stops it while it generates IDs flat
// out.
func TestStoppedProcess(t *testing.T) {
	const variable, stops = "TRACEFLAKE_STOPPED", 10
	if os.Getenv(variable) != "" {
		generateForASecond(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestStoppedProcess$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("this program cannot start itself: it runs in an emulator")
	} else if err != nil {
		t.Fatal(err)
	}
	for range stops {
		time.Sleep(40 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "worst") {
		t.Error("the process generated nothing")
	}
	t.Log(out.String())
}

func generateForASecond(t *testing.T) {
	g := New()
	n, worst, longest, last := 0, time.Duration(0), time.Duration(0), uint64(0)
	began := time.Now()
	for before := began; before.Sub(began) < time.Second; n++ {
		id, _ := g.NewIDs(t.Context())
		worst = max(worst, before.Sub(traceid.Time(id)))
		if half(id) == last {
			t.Fatalf("%s is a duplicate", id)
		}
		last = half(id)
		now := time.Now()
		longest, before = max(longest, now.Sub(before)), now
	}
	fmt.Printf("%d IDs, worst %v behind, longest call %v\n", n, worst, longest)
	if worst > 5*time.Millisecond/4 {
		t.Errorf("an ID is %v behind the clock", worst)
	}
	if longest < 20*time.Millisecond {
		t.Errorf("it was never stopped: the longest call took %v", longest)
	}
}
