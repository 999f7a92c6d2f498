package boltstore

import (
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
)

// TestFullDisk runs in a process that may write no file beyond a size. What
// was granted before stays, what cannot be written is not granted.
func TestFullDisk(t *testing.T) {
	const limited = "BOLTSTORE_TEST_FULL"
	if os.Getenv(limited) == "" {
		again(t, limited+"=1")
		return
	}
	path, other := newPath(t), newPath(t)
	s := open(t, path)
	first := acquire(t, s, calls.Request(time.Now()))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	size := syscall.Rlimit{Cur: uint64(info.Size()) / 2, Max: math.MaxUint64}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Skip(err)
	}
	granted := 1
	for err == nil && granted < 100 { // until a page beyond the limit is needed
		if _, err = s.Acquire(t.Context(), calls.Request(time.Now())); err == nil {
			granted++
		}
	}
	_, raise := s.Raise(t.Context(), time.Now().Add(time.Hour))
	_, create := Open(other)
	for name, err := range map[string]error{"acquire": err, "raise": raise, "create": create} {
		if err == nil || !strings.Contains(err.Error(), "file too large") { // bbolt does not wrap it everywhere
			t.Errorf("%s gives %v, want the system's error", name, err)
		}
	}
	size.Cur = size.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Fatal(err)
	}
	if blocks, err := s.List(t.Context()); err != nil || len(blocks) != granted {
		t.Errorf("%d blocks are granted, %v; want %d", len(blocks), err, granted)
	}
	if got, err := s.Get(t.Context(), first.Node); err != nil || got != first {
		t.Errorf("the first grant is %v, %v; want %v", got, err, first)
	}
	acquire(t, s, calls.Request(time.Now())) // there is room again
}
