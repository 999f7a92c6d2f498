package filestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

var wantError = calls.WantError("")

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "leases") }

func open(tb testing.TB, path string) *objects {
	tb.Helper()
	o, err := newObjects(path)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// A URL has the whole path, wherever a process was started, and no parameters.
func TestURL(t *testing.T) {
	for _, url := range []string{"file:", "file:leases", "file:../leases", "file:~/leases",
		"file: /leases", "file://leases", `file:C:\leases`, "file:/leases?mode=0700",
		"file:/leases#1"} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest, "write the whole path after file:")
	}
	_, err := New("")
	wantError(t, "no path", err, lease.ErrInvalidRequest)
	for _, begin := range []string{"file:", "file://"} {
		if _, err := stores.Open(begin + newPath(t)); err != nil {
			t.Error(err)
		}
	}
}

// The first processes of a host create a directory with one secret, which others cannot read. What
// a killed one left is no secret file, and one that an operator put there is kept.
func TestSecret(t *testing.T) {
	path := newPath(t)
	file := filepath.Join(path, secretName)
	fingerprint := func() string {
		k, err := Secret(t.Context(), path)
		if err != nil {
			t.Error(err)
			return ""
		}
		return lease.History{}.Fingerprint(k.Codec())
	}
	var secrets [6]string
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() { secrets[i] = fingerprint() })
	}
	all.Wait()
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Errorf("the secrets are %q", secrets)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o700, file: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	left := strings.Repeat("longer than a secret file\n", 10)
	if err := errors.Join(os.Remove(file),
		os.WriteFile(file+unfinished, []byte(left), fileMode)); err != nil {
		t.Fatal(err)
	}
	again := fingerprint()
	if files, err := os.ReadDir(path); again == secrets[0] || err != nil || len(files) != 1 {
		t.Errorf("the files are %v, %v; another secret was drawn: %t", files, err,
			again != secrets[0])
	}
	o := open(t, path)
	if _, err := locked(t.Context(), o, o.open, (*directory).draw); !errors.Is(err, fs.ErrExist) ||
		fingerprint() != again {
		t.Errorf("drawn beside a secret file: %v", err)
	}
	if err := os.Truncate(file, 60); err != nil {
		t.Fatal(err)
	}
	_, err := Secret(t.Context(), path)
	wantError(t, "half a secret", err, randflake.ErrInvalidKeyring, file)
}

// A directory whose secret is lost is not used under another one, until an operator begins a
// history.
func TestLostSecret(t *testing.T) {
	path := newPath(t)
	s, err := New(path)
	first, failed := Secret(t.Context(), path)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	created := stores.Ensure(t.Context(), s, first.Codec())
	removed := os.Remove(filepath.Join(path, secretName))
	another, err := Secret(t.Context(), path)
	d, failed := s.Describe(t.Context())
	if err := errors.Join(created, removed, err, failed); err != nil {
		t.Fatal(err)
	}
	_, found := d.Find(another)
	_, begun := s.Begin(t.Context(), lease.BeginRequest{Leaves: d.ID, Reason: lease.Moved,
		Secrets: another})
	for _, err := range []error{found, begun} {
		wantError(t, "another secret", err, lease.ErrWrongSecret, "traceflake lease rekey")
	}
	if _, err := s.Begin(t.Context(), lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey,
		Secret: another.Codec()}); err != nil {
		t.Error(err)
	}
}

// Only Prepare creates the directory. An empty file is none that was written.
func TestFiles(t *testing.T) {
	path := newPath(t)
	o := open(t, path)
	_, read := o.Read(t.Context(), "config")
	_, write := o.Write(t.Context(), "config", []byte("1"), "", "here")
	if read != nil || !errors.Is(write, lease.ErrMoved) {
		t.Errorf("read: %v; write: %v, want %v", read, write, lease.ErrMoved)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
	calls.NewPlace(t, o)
	if err := os.Truncate(filepath.Join(path, "config"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := o.Read(t.Context(), "config")
	wantError(t, "an empty file", err, driver.ErrEdited, "config")
}

// A directory that was put back from a copy is another one, even with the inode of the one that was
// removed. A directory may be renamed.
func TestCopies(t *testing.T) {
	path := newPath(t)
	o := open(t, path)
	original := calls.NewPlace(t, o)
	if err := errors.Join(os.CopyFS(path+".copy", os.DirFS(path)),
		os.Rename(path, path+".old")); err != nil {
		t.Fatal(err)
	}
	renamed, err := open(t, path+".old").Read(t.Context(), "config")
	if err != nil || renamed.Place != original.Place {
		t.Errorf("renamed: the place is %q, %v; want %q", renamed.Place, err, original.Place)
	}
	original.Refuses(t, open(t, path+".copy"))
	if err := errors.Join(os.RemoveAll(path+".old"),
		os.CopyFS(path, os.DirFS(path+".copy"))); err != nil {
		t.Fatal(err)
	}
	original.Refuses(t, o)
}

// hold locks a directory, as another process does, until the function that it returns is called.
func hold(tb testing.TB, path string) (release func()) {
	tb.Helper()
	o := open(tb, path)
	d, err := o.lock(context.Background(), o.open)
	if err != nil {
		tb.Fatal(err)
	}
	return func() { _ = d.close() }
}

// A call that waited for the lock of a directory, which was replaced meanwhile, does not take it
// for the other.
func TestReplacedDirectory(t *testing.T) {
	path, other := newPath(t), newPath(t)
	o := open(t, path)
	calls.NewPlace(t, o)
	there := calls.NewPlace(t, open(t, other))
	release, opened, done := hold(t, path), make(chan struct{}), make(chan error)
	o.disk.lock = func(root *os.Root) (*os.File, error) {
		close(opened)
		return system.lock(root)
	}
	go func() {
		_, err := o.Write(t.Context(), "config", []byte("1"), there.Version, there.Place)
		done <- err
	}()
	<-opened
	renamed := errors.Join(os.Rename(path, path+".old"), os.Rename(other, path))
	release()
	if err := <-done; renamed != nil || !errors.Is(err, lease.ErrMoved) {
		t.Errorf("a write at the place of the other: %v, want %v; %v", err, lease.ErrMoved, renamed)
	}
}

// A disk that does not answer ends no call later than its context.
func TestHungDisk(t *testing.T) {
	o := open(t, newPath(t))
	calls.NewPlace(t, o)
	hung := make(chan struct{}, 1)
	o.disk.syncName = func(root *os.Root, name string) error {
		hung <- <-hung
		return system.syncName(root, name)
	}
	for range 2 { // the second call waits for the first one
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := o.Read(ctx, "config")
		wantError(t, "a hung disk", err, context.DeadlineExceeded, "locked by other processes")
		cancel()
	}
	hung <- struct{}{}
	o.turn <- struct{}{} // when the last call has ended
}

// A file that a killed process renamed but did not sync is synced before anybody acts on it.
func TestUnsynced(t *testing.T) {
	o := open(t, newPath(t))
	place := calls.NewPlace(t, o).Place
	killed := errors.New("killed")
	o.disk.syncName = func(*os.Root, string) error { return killed }
	_, write := o.Write(t.Context(), "note", []byte("1"), "", place)
	_, read := o.Read(t.Context(), "note")
	for _, err := range []error{write, read} {
		wantError(t, "unsynced", err, killed)
	}
}

// The contract of Objects; another process that holds the lock plays a server that does not answer.
func TestObjects(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		path := filepath.Join(tb.TempDir(), "leases")
		return leasetest.Storage{
			Open:   func(string) (driver.Objects, error) { return open(tb, path), nil },
			Delete: func(name string) error { return os.Remove(filepath.Join(path, name)) },
			Stall:  func() func() { return hold(tb, path) },
		}
	})
}
