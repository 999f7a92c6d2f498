package filestore

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
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

// Every write is on the disk when it is answered: a machine that loses its power forgets no grant.
// The data is synced before the file gets its name, and the name after that.
func TestAnswersAreSynced(t *testing.T) {
	path := newPath(t)
	s := unopened(t, path)
	durable := map[string]string{} // what files had when their names were synced
	s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
		for _, name := range names {
			durable[name] = content(t, filepath.Join(path, name))
			if pages, counts := unsynced(t, root, name); counts && pages > 0 {
				t.Errorf("%s got its name with %d pages not on the disk", name, pages)
			}
		}
		return system.syncNames(root, names...)
	}
	answered := func(step string, err error) {
		t.Helper()
		files, unread := os.ReadDir(path)
		if err = errors.Join(err, unread); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		for _, f := range files {
			if content(t, filepath.Join(path, f.Name())) != durable[f.Name()] {
				t.Errorf("%s: answered before the name of %s was synced", step, f.Name())
			}
		}
	}
	answered("create", ensure(t, s))
	if _, synced := durable[filepath.Base(path)]; !synced {
		t.Error("create: answered before the name of the directory was synced")
	}
	_, err := s.objects.Write(t.Context(), "note", []byte("1"), "", here(t, s))
	answered("write", err)
	_, err = begin(t, s)
	answered("begin", err)
}

// content returns what a file has, or "" if there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EISDIR) {
		t.Error(err)
	}
	return string(b)
}

// unsynced is how many pages of a file the kernel has not written to the disk yet. It is false if
// the kernel, before 6.5, or the file system cannot report it, or if the file is a directory.
func unsynced(t *testing.T, root *os.Root, name string) (pages uint64, ok bool) {
	t.Helper()
	f, err := root.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var s unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &s, 0); err != nil {
		return 0, false
	}
	return s.Dirty + s.Writeback, true
}

// TestFullDisk runs in a process that may write no file beyond a size. What was written before
// stays, and what cannot be written is refused.
func TestFullDisk(t *testing.T) {
	const limited = "FILESTORE_TEST_FULL"
	if os.Getenv(limited) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if fix := lease.Fix(explain(errFull)); !strings.Contains(fix, "free some space") {
		t.Errorf("the fix is %q", fix)
	}
	path, other := newPath(t), newPath(t)
	s := open(t, path)
	first := acquire(t, s, time.Now())
	signal.Ignore(syscall.SIGXFSZ)
	size := syscall.Rlimit{Cur: 64, Max: math.MaxUint64} // less than any object
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Skip(err)
	}
	renewed := calls.Renewal(first)
	_, renew := s.Renew(t.Context(), first, renewed)
	create := ensure(t, unopened(t, other))
	for name, err := range map[string]error{"renew": renew, "create": create} {
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%s gives %v, want the system's error", name, err)
		}
	}
	size.Cur = size.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &size); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), first); err != nil || got != first {
		t.Errorf("the grant is %v, %v; want %v", got, err, first)
	}
	if _, err := s.Renew(t.Context(), first, renewed); err != nil { // there is room again
		t.Error(err)
	}
	open(t, other)
}
