package boltstore_test

import (
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/lease/driver"
)

// TestFullDisk runs in a process that may write no file beyond a size. What
// was granted before stays, what cannot be written is not granted.
func TestFullDisk(t *testing.T) {
	const limited = "BOLTSTORE_TEST_FULL"
	if os.Getenv(limited) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^TestFullDisk$", "-test.v")
		cmd.Env = append(os.Environ(), limited+"=1", "TMPDIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "leases.db")
	store, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	request := func() lease.Request {
		return lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute}
	}
	first, err := store.Acquire(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
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
	for range 100 { // until a page beyond the limit is needed
		_, err = store.Acquire(t.Context(), request())
		if err != nil {
			break
		}
		granted++
	}
	if err == nil || !strings.Contains(err.Error(), "file too large") { // bbolt does not wrap it everywhere
		t.Fatalf("got %v, want the system's error", err)
	}
	for name, err := range map[string]error{
		"raise": raised(store.Raise(t.Context(), time.Now().Add(time.Hour))),
		"open":  errorOf(boltstore.Open(filepath.Join(t.TempDir(), "other.db"))),
	} {
		if err == nil || !strings.Contains(err.Error(), "file too large") {
			t.Errorf("%s gives %v, want the system's error", name, err)
		}
	}
	size.Cur = size.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Fatal(err)
	}
	if blocks, err := store.List(t.Context()); err != nil || len(blocks) != granted {
		t.Errorf("%d blocks are granted, %v; want %d", len(blocks), err, granted)
	}
	if got, err := store.Get(t.Context(), first.Node); err != nil || got != first {
		t.Errorf("the first grant is %v, %v; want %v", got, err, first)
	}
	if _, err := store.Acquire(t.Context(), request()); err != nil {
		t.Errorf("no grant after there is room again: %v", err)
	}
}

func raised(_ time.Time, err error) error { return err }

func errorOf(_ driver.Embedded, err error) error { return err }
