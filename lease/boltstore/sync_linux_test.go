package boltstore

import (
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

// unsynced is how many pages of a file the kernel has not written to the disk
// yet. It is false if the kernel, before 6.5, or the file system cannot report
// it.
func unsynced(t *testing.T, path string) (pages uint64, ok bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &s, 0); err != nil {
		t.Logf("cachestat: %v", err)
		return 0, false
	}
	return s.Dirty + s.Writeback, true
}

// Every write is on the disk when it is answered: a machine that loses its
// power forgets no grant.
func TestAnswersAreSynced(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	if err := os.WriteFile(scratch, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	pages, ok := unsynced(t, scratch)
	counts := ok && pages > 0 // or a file that was not synced looks like one that was

	path := newPath(t)
	var s *store
	var g lease.Grant
	for _, step := range []struct {
		name  string
		write func() error
	}{
		{"open", func() error { s = open(t, path); return nil }},
		{"acquire", func() (err error) { g, err = s.Acquire(t.Context(), calls.Request(start)); return err }},
		{"renew", func() (err error) {
			g, err = s.Renew(t.Context(), g, calls.Renewal(g))
			return err
		}},
		{"release", func() error { return s.Release(t.Context(), g, lease.NewNonce(), start) }},
		{"raise", func() error { _, err := s.Raise(t.Context(), start.Add(time.Hour)); return err }},
	} {
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if pages, _ := unsynced(t, path); counts && pages > 0 {
			t.Errorf("%s: answered with %d pages not on the disk", step.name, pages)
		}
	}
	// Where the kernel does not count, what bbolt was told must do.
	var f *os.File
	db, err := s.file.open(t.Context(), write, &f)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if db.NoSync || db.NoGrowSync || db.NoFreelistSync {
		t.Error("bbolt is told not to sync")
	}
	t.Logf("pages counted: %t", counts)
}

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
