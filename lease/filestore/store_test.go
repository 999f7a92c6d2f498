package filestore

import (
	"context"
	"errors"
	"fmt"
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

var wantError = calls.WantError("filestore: ")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// directoryStore is a store, and its objects.
type directoryStore struct {
	stores.Store
	objects *objects
}

func open(t *testing.T, path string) directoryStore {
	t.Helper()
	s := unopened(t, path)
	if err := ensure(t, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func unopened(t *testing.T, path string) directoryStore {
	t.Helper()
	s, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	return directoryStore{s, s.(interface{ Objects() driver.Objects }).Objects().(*objects)}
}

// ensure does what a process does when it starts.
func ensure(t *testing.T, s directoryStore) error {
	t.Helper()
	k, err := s.objects.secret(t.Context())
	if err != nil {
		return err
	}
	return stores.Ensure(t.Context(), s, k.Codec())
}

// begin begins a history with the directory's secret.
func begin(t *testing.T, s directoryStore) (lease.Description, error) {
	t.Helper()
	now, _ := s.Describe(t.Context())
	k, err := s.objects.secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Begin(t.Context(), lease.BeginRequest{Leaves: now.ID, Reason: lease.Moved,
		Now: start, Secrets: k})
}

// acquire acquires a block, in the store's history.
func acquire(t *testing.T, s directoryStore, now time.Time) lease.Grant {
	t.Helper()
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Acquire(t.Context(), calls.Request(d.ID, now))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A URL has the whole path, which does not depend on where a process was started, and no parameters.
func TestURL(t *testing.T) {
	for _, url := range []string{"file:", "file:leases", "file:../leases", "file:~/leases",
		"file: /leases", `file:C:\leases`, "file:/leases?mode=0700", "file:/leases#1"} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest, "write the whole path after file:")
	}
	_, err := New("")
	wantError(t, "no path", err, lease.ErrInvalidRequest)
	if _, err := stores.Open("file:" + newPath(t)); err != nil {
		t.Error(err)
	}
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "leases") }

// fingerprint returns that of a directory's secret, which differs from that of others.
func fingerprint(t *testing.T, path string) string {
	t.Helper()
	k, err := Secret(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return lease.History{}.Fingerprint(k.Codec())
}

// Processes that start at once on a host without a directory use one, with one secret.
func TestFirstUse(t *testing.T) {
	path := newPath(t)
	var secrets [6]string
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			open(t, path)
			secrets[i] = fingerprint(t, path)
		})
	}
	all.Wait()
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Errorf("the secrets are %q", secrets)
		}
	}
	if open(t, newPath(t)); fingerprint(t, newPath(t)) == secrets[0] {
		t.Error("two directories have one secret")
	}
	for name, want := range map[string]os.FileMode{path: 0o700,
		filepath.Join(path, "secret"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(path, "*.new")); err != nil || len(left) > 0 {
		t.Errorf("the files %q are left, %v", left, err)
	}
}

// A process that is killed while it draws the secret leaves no secret file, and one that an
// operator puts there is kept.
func TestSecretIsInterrupted(t *testing.T) {
	path := newPath(t)
	if err := os.Mkdir(path, dirMode); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(path, secretName+unfinished)
	if err := os.WriteFile(half, []byte("# half a sec"), fileMode); err != nil {
		t.Fatal(err)
	}
	first := fingerprint(t, path)
	if fingerprint(t, path) != first {
		t.Error("the secret is drawn again")
	}
	o, err := newObjects(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := locked(t.Context(), o, o.open, (*directory).draw) // the file is there already
	k, bad := randflake.ParseKeyring(string(text))
	if err := errors.Join(err, bad); err != nil ||
		(lease.History{}).Fingerprint(k.Codec()) != first {
		t.Errorf("drawn beside a secret file: %v", err)
	}
	edit(t, path, secretName, func(s string) string { return s[:len(s)-8] })
	if _, err := Secret(t.Context(), path); !errors.Is(err, randflake.ErrInvalidKeyring) ||
		!strings.Contains(err.Error(), filepath.Join(path, secretName)) {
		t.Errorf("half a secret: %v", err)
	}
}

// Nothing but Prepare creates the directory, and a store that was closed neither creates nor reads
// anything.
func TestMissing(t *testing.T) {
	path := newPath(t)
	s := unopened(t, path)
	_, read := s.objects.Read(t.Context(), "config")
	_, list := s.objects.List(t.Context())
	_, write := s.objects.Write(t.Context(), "config", []byte("1"), "", "here")
	err := errors.Join(read, list, s.Close())
	if err != nil || !errors.Is(write, lease.ErrMoved) {
		t.Errorf("read, list and close: %v; write: %v, want %v", err, write, lease.ErrMoved)
	}
	if _, err := s.Create(t.Context(), lease.Description{}, calls.Secret()); !errors.Is(err,
		lease.ErrClosed) {
		t.Errorf("got %v, want %v", err, lease.ErrClosed)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
}

// edit replaces the content of a directory's files that match a pattern, or removes them.
func edit(t *testing.T, path, pattern string, change func(string) string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, pattern))
	for _, name := range names {
		if change == nil {
			err = errors.Join(err, os.Remove(name))
			continue
		}
		b, failed := os.ReadFile(name)
		err = errors.Join(err, failed, os.WriteFile(name, []byte(change(string(b))), fileMode))
	}
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
}

// wantMoved checks that the directory at a path grants nothing until a history is begun there.
func wantMoved(t *testing.T, what, path string) {
	t.Helper()
	s := open(t, path)
	if _, err := s.Describe(t.Context()); !errors.Is(err, lease.ErrMoved) {
		t.Errorf("%s: describe: %v, want %v", what, err, lease.ErrMoved)
	}
	if _, err := begin(t, s); err != nil {
		t.Errorf("%s: begin: %v", what, err)
	}
	acquire(t, s, start)
}

// A directory that was put back from a copy is another one. A directory may be renamed.
func TestCopiedDirectory(t *testing.T) {
	path := newPath(t)
	open(t, path)
	before := fingerprint(t, path)
	if err := errors.Join(os.CopyFS(path+".copy", os.DirFS(path)), os.Rename(path, path+".old"),
		os.Rename(path+".copy", path)); err != nil {
		t.Fatal(err)
	}
	acquire(t, open(t, path+".old"), start)
	if wantMoved(t, "a copy", path); fingerprint(t, path) != before {
		t.Error("the copy has another secret")
	}
}

// A write compares the place under the lock: nothing is written in a copy.
func TestMovedBeforeTheWrite(t *testing.T) {
	for at := 1; at <= 3; at++ {
		s := open(t, newPath(t))
		g := acquire(t, s, start)
		asked, moved := 0, false
		s.objects.disk.place = func(root *os.Root) (string, error) {
			place, err := system.place(root)
			if asked++; asked >= at {
				place, moved = "elsewhere", true
			}
			return place, err
		}
		_, err := s.Renew(t.Context(), g, calls.Renewal(g))
		if !moved || !errors.Is(err, lease.ErrMoved) {
			t.Errorf("moved at request %d: %v, want %v", at, err, lease.ErrMoved)
		}
		s.objects.disk = system
		if now, err := s.Get(t.Context(), g); err != nil || (now != g) != (at == 3) {
			t.Errorf("moved at request %d: the block is %+v, %v", at, now, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		change  func(string) string
		want    error
	}{
		"half a configuration": {"config", func(s string) string { return s[:len(s)/2] },
			driver.ErrEdited},
		"an empty page": {"page-*", func(string) string { return "" }, driver.ErrEdited},
		"no config":     {"config", nil, lease.ErrExists},
	} {
		path := newPath(t)
		g := acquire(t, open(t, path), start)
		edit(t, path, c.pattern, c.change)
		s := unopened(t, path)
		err := ensure(t, s)
		if err == nil {
			_, err = s.Get(t.Context(), g)
		}
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s: got %v, want %v and the path", name, err, c.want)
		}
	}
}

// A store whose secret is lost grants leases again when an operator begins a history with another
// one, and not before.
func TestLostSecret(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	edit(t, path, secretName, nil)
	if _, err := begin(t, s); !errors.Is(err, lease.ErrWrongSecret) {
		t.Errorf("begin: %v, want %v", err, lease.ErrWrongSecret)
	}
	k, err := Secret(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), lease.BeginRequest{Leaves: now.ID, Reason: lease.Rekey,
		Secret: k.Codec()}); err != nil {
		t.Error(err)
	}
	acquire(t, s, start)
}

// here returns the place of a directory.
func here(t *testing.T, s directoryStore) string {
	t.Helper()
	o, err := s.objects.Read(t.Context(), "config")
	if err != nil || o.Place == "" {
		t.Fatalf("the place is %q, %v", o.Place, err)
	}
	return o.Place
}

// hold locks a directory, as another process does, until the function that it returns is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	s := unopened(t, path)
	d, err := s.objects.lock(t.Context(), s.objects.open)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = d.close() }
}

// A call waits for the lock until its context ends, and opens the directory once: if many processes
// did more than wait, the one with the lock would not run. If another directory is put in place
// meanwhile, the call uses that one.
func TestLocked(t *testing.T) {
	path, other := newPath(t), newPath(t)
	s := open(t, path)
	open(t, other)
	// a killed process left a longer one
	if err := os.WriteFile(filepath.Join(other, "note.new"), []byte("22"), fileMode); err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	opened, done := make(chan struct{}, 10), make(chan error)
	s.objects.disk.lock = func(root *os.Root) (*os.File, error) {
		opened <- struct{}{}
		return system.lock(root)
	}
	place := here(t, open(t, other)) // which is not that of the directory that is locked now
	go func() {
		_, err := s.objects.Write(t.Context(), "note", []byte("1"), "", place)
		done <- err
	}()
	<-opened
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.List(ctx); !errors.Is(err, errLocked) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v and the context's error", err, errLocked)
	}
	if err := errors.Join(os.Rename(path, path+".old"), os.Rename(other, path)); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "note")); err != nil || string(b) != "1" {
		t.Errorf("the directory in place has %q, %v; want what was written", b, err)
	}
	if len(opened) != 1 {
		t.Errorf("%d directories were opened after the first one, want one", len(opened))
	}
}

// A disk that does not answer ends no call later than its context, and Close at once.
func TestHungDisk(t *testing.T) {
	s := open(t, newPath(t))
	hung := make(chan struct{}, 1)
	s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
		hung <- <-hung
		return system.syncNames(root, names...)
	}
	for range 2 { // the second call waits for the first one
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := s.List(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		cancel()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	hung <- struct{}{}
	s.objects.turn <- struct{}{} // when the last call has ended
}

// A file that a killed process renamed but did not sync is synced before anybody acts on it.
func TestUnsynced(t *testing.T) {
	s := open(t, newPath(t))
	killed, place := errors.New("killed"), here(t, s)
	s.objects.disk.syncNames = func(*os.Root, ...string) error { return killed }
	_, write := s.objects.Write(t.Context(), "note", []byte("1"), "", place)
	_, read := s.objects.Read(t.Context(), "note")
	_, list := s.objects.List(t.Context())
	for _, err := range []error{write, read, list} {
		if !errors.Is(err, killed) {
			t.Errorf("got %v, want %v", err, killed)
		}
	}
}

// The contract of Objects; another process that holds the lock plays a server that does not answer.
func TestObjects(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		path := filepath.Join(tb.TempDir(), "leases")
		var disk sync.Mutex // held while it syncs nothing
		return leasetest.Storage{
			Open: func(string) (driver.Objects, error) {
				s, err := New(path)
				if err != nil {
					return nil, err
				}
				o := s.(interface{ Objects() driver.Objects }).Objects().(*objects)
				o.disk.syncNames = func(root *os.Root, names ...string) error {
					disk.Lock()
					defer disk.Unlock()
					return system.syncNames(root, names...)
				}
				return o, nil
			},
			Delete: func(name string) error { return os.Remove(filepath.Join(path, name)) },
			Stall:  func() func() { return hold(t, path) },
			Hold: func() func() {
				disk.Lock()
				return disk.Unlock
			},
		}
	})
}

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	path := newPath(t)
	calls.Restored(t, func() (stores.Store, error) { return New(path) })
}
