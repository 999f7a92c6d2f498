package filestore

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

// Every write is on the disk when it is answered: a machine that loses its power forgets no grant.
// The data is synced before the file gets its name, and the name after that.
func TestAnswersAreSynced(t *testing.T) {
	path := newPath(t)
	o := open(t, path)
	durable := map[string]string{} // what files had when their names were synced
	o.disk.syncName = func(root *os.Root, name string) error {
		durable[name] = content(t, filepath.Join(path, name))
		if pages, counts := unsynced(t, root, name); counts && pages > 0 {
			t.Errorf("%s got its name with %d pages not on the disk", name, pages)
		}
		return system.syncName(root, name)
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
	_, err := o.secret(t.Context())
	answered("secret", err)
	if _, synced := durable[filepath.Base(path)]; !synced {
		t.Error("secret: answered before the name of the directory was synced")
	}
	first, err := calls.Write(t.Context(), o, "note", "1", "")
	answered("create", err)
	_, err = calls.Write(t.Context(), o, "note", "2", first.Version)
	answered("replace", err)
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

// What was written before a disk was full stays, and what cannot be written is refused. The test
// runs in a process that may write no file beyond a size.
func TestFullDisk(t *testing.T) {
	const limited = "FILESTORE_TEST_FULL"
	if os.Getenv(limited) == "" { // go test writes files, too
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	wantError(t, "a full disk", explain(errFull), lease.ErrDiskFull, "free some space")
	o := open(t, newPath(t))
	first, err := calls.Write(t.Context(), o, "note", "1", "")
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("2", 1<<20)
	signal.Ignore(syscall.SIGXFSZ)
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &usual); err != nil {
		t.Skip(err)
	}
	full := syscall.Rlimit{Cur: 1 << 19, Max: usual.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Skip(err)
	}
	_, refused := calls.Write(t.Context(), o, "note", large, first.Version)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &usual); err != nil {
		t.Fatal(err)
	}
	wantError(t, "beyond the size", refused, syscall.EFBIG)
	if now, err := o.Read(t.Context(), "note"); err != nil || string(now.Data) != "1" {
		t.Errorf("the object is %q, %v", now.Data, err)
	}
	if _, err := calls.Write(t.Context(), o, "note", large, first.Version); err != nil {
		t.Errorf("when there is space again: %v", err)
	}
}

// CheckRights finds a disk that has no space for a page.
func TestSmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip(err) // only root can
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	wantError(t, "a small disk", open(t, filepath.Join(dir, "leases")).CheckRights(t.Context()),
		lease.ErrDiskFull, "bytes are free")
}
