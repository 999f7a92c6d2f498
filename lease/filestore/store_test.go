package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, path string) *store {
	t.Helper()
	s := unopened(t, path)
	if _, err := ensure(t, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func unopened(t *testing.T, path string) *store {
	t.Helper()
	s, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

func ensure(t *testing.T, s *store) (*randflake.Keyring, error) {
	t.Helper()
	return stores.EnsureSecrets(t.Context(), s)
}

// acquire acquires a block, whatever the store's ID.
func acquire(t *testing.T, s *store, r lease.Request) lease.Grant {
	t.Helper()
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Store = d.ID
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "leases") }

// fingerprint returns that of a directory's secret, which differs from that of others.
func fingerprint(t *testing.T, s stores.Store) string {
	t.Helper()
	k, err := s.Secrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease.Description{}.Fingerprint(k.Codec())
}

// Processes that start at once on a host without a directory use one, with one secret.
func TestFirstUse(t *testing.T) {
	path := newPath(t)
	var secrets [6]string
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() { secrets[i] = fingerprint(t, open(t, path)) })
	}
	all.Wait()
	for _, secret := range secrets {
		if secret != fingerprint(t, open(t, path)) {
			t.Errorf("the secrets are %q", secrets)
		}
	}
	if fingerprint(t, open(t, newPath(t))) == secrets[0] {
		t.Error("two directories have one secret")
	}
	files, err := filepath.Glob(filepath.Join(path, "*.secret"))
	if err != nil || len(files) != 1 { // those that lost remove theirs
		t.Fatalf("the files of secrets are %q, %v", files, err)
	}
	for name, want := range map[string]os.FileMode{path: 0o700, files[0]: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// Nothing but the creation of a store creates the directory, and a store that was closed neither
// creates nor reads anything.
func TestMissing(t *testing.T) {
	path := newPath(t)
	s := unopened(t, path)
	_, read := s.objects.Read(t.Context(), "config")
	_, list := s.objects.List(t.Context())
	_, write := s.objects.Write(t.Context(), "config", []byte("1"), "")
	err := errors.Join(read, list, s.Close())
	if err != nil || !errors.Is(write, driver.ErrChanged) {
		t.Errorf("read, list and close: %v; write: %v, want %v", err, write, driver.ErrChanged)
	}
	_, secrets := s.Secrets(t.Context())
	for _, err := range []error{s.Create(t.Context(), lease.Description{}), secrets} {
		if !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %v, want %v", err, lease.ErrClosed)
		}
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

// A directory that was put back from a copy is another one, until it has a secret of its own. The
// old secret still verifies. A directory may be renamed.
func TestCopiedDirectory(t *testing.T) {
	path := newPath(t)
	before := fingerprint(t, open(t, path))
	if err := errors.Join(os.CopyFS(path+".copy", os.DirFS(path)), os.Rename(path, path+".old"),
		os.Rename(path+".copy", path)); err != nil {
		t.Fatal(err)
	}
	open(t, path+".old")
	s := unopened(t, path)
	if _, err := ensure(t, s); !errors.Is(err, lease.ErrMoved) {
		t.Errorf("a copy: %v", err)
	}
	d, _ := s.Describe(t.Context())
	err := s.Replace(t.Context(), d.ID, "", "")
	k, failed := s.Secrets(t.Context())
	if err = errors.Join(err, failed); err != nil || len(k.Codecs()) != 2 ||
		(lease.Description{}).Fingerprint(k.Codecs()[1]) != before {
		t.Errorf("the old secret is lost: %v", err)
	}
}

// A creation that was interrupted at any moment is completed, with the same secret. A directory
// that is restored to any moment of a creation or a replacement gets a secret that was never in
// use, although that of the moment may have been since. A secret belongs to one store: if nothing
// else is left, the next store has another.
func TestInterruptions(t *testing.T) {
	path, above := newPath(t), t.TempDir()
	s := unopened(t, path)
	var moments []string
	s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
		moments = append(moments, filepath.Join(above, fmt.Sprint(len(moments))))
		if err := os.CopyFS(moments[len(moments)-1], root.FS()); err != nil {
			t.Error(err)
		}
		return system.syncNames(root, names...)
	}
	if err := s.Create(t.Context(), lease.Description{Nodes: 8}); err != nil { // one page
		t.Fatal(err)
	}
	used := []string{fingerprint(t, s)}
	replace := func() {
		t.Helper()
		d, err := s.Describe(t.Context())
		if errors.Is(err, lease.ErrReplacing) {
			d.ID = d.Replaced // the command is repeated
		}
		if err := s.Replace(t.Context(), d.ID, "", ""); err != nil {
			t.Fatal(err)
		}
		if secret := fingerprint(t, s); slices.Contains(used, secret) {
			t.Errorf("from %+v, %v: the secret begins a history again", d, err)
		} else {
			used = append(used, secret)
		}
	}
	replace()
	s.objects.disk = system
	for _, moment := range moments[1:] { // the first sync is of the directory above
		restore := func() (d lease.Description, err error) {
			edit(t, path, "*", nil)
			if err := os.CopyFS(path, os.DirFS(moment)); err != nil {
				t.Fatal(err)
			}
			return s.Describe(t.Context())
		}
		d, err := restore()
		if d.ID != "" {
			replace()
			_, err = restore()
		}
		if errors.Is(err, lease.ErrNoStore) {
			open(t, path)
			now, err := s.Describe(t.Context())
			known := slices.Contains(used, fingerprint(t, s))
			if err != nil || known != (d.ID != "") || known && now.ID != d.ID {
				t.Errorf("%+v was completed as %+v, %v; its secret was in use: %t", d, now, err,
					known)
			}
		}
	}
}

// A replacement that is interrupted more than once is completed by the same call. The first secret
// still verifies.
func TestInterruptedAgain(t *testing.T) {
	s := open(t, newPath(t))
	before := fingerprint(t, s)
	d, err := s.Describe(t.Context())
	for range 2 {
		syncs := 0
		s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
			if syncs++; syncs > 5 { // when the description has another ID
				return errors.New("killed")
			}
			return system.syncNames(root, names...)
		}
		if s.Replace(t.Context(), d.ID, "", "") == nil {
			t.Error("it was not interrupted")
		}
	}
	s.objects.disk = system
	replaced := s.Replace(t.Context(), d.ID, "", "")
	k, failed := s.Secrets(t.Context())
	if err := errors.Join(err, replaced, failed); err != nil {
		t.Fatal(err)
	}
	all := k.Codecs()
	if oldest := (lease.Description{}).Fingerprint(all[len(all)-1]); oldest != before {
		t.Errorf("the first secret is lost: %d are left", len(all))
	}
}

// A machine that was restored from a snapshot may not be the only one with this directory.
func TestRestoredMachine(t *testing.T) {
	for what, restore := range map[string]func(*store){
		"vmclock": func(s *store) {
			s.objects.machine = func() uint64 { return s.objects.life + 1 }
		},
		"OnRestore": (*store).OnRestore,
	} {
		s := open(t, newPath(t))
		g := acquire(t, s, calls.Request(start))
		restore(s)
		for _, call := range calls.OnBlocks(t.Context(), s, g, start) {
			if !errors.Is(call.Err, ErrCopied) {
				t.Errorf("%s: %s: got %v, want ErrCopied", what, call.Name, call.Err)
			}
		}
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		change        func(string) string
		want          error
	}{
		{"half a secret", "*.secret", func(s string) string { return s[:len(s)-8] },
			driver.ErrEdited},
		{"another secret", "*.secret",
			func(s string) string { return s[:len(s)-33] + strings.Repeat("1f", 16) + "\n" },
			driver.ErrEdited},
		{"no secret", "*.secret", nil, driver.ErrEdited},
		{"no config", "config", nil, lease.ErrExists},
	} {
		path := newPath(t)
		open(t, path)
		edit(t, path, c.pattern, c.change)
		_, err := ensure(t, unopened(t, path))
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s: got %v, want %v and the path", c.name, err, c.want)
		}
	}
}

// A store whose secret is lost can get another one.
func TestLostSecret(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	edit(t, path, "*.secret", nil)
	d, err := s.Describe(t.Context())
	if err := errors.Join(err, s.Replace(t.Context(), d.ID, "", "")); err != nil {
		t.Fatal(err)
	}
	fingerprint(t, s)
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
	go func() {
		_, err := s.objects.Write(t.Context(), "note", []byte("1"), "")
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
	killed := errors.New("killed")
	s.objects.disk.syncNames = func(*os.Root, ...string) error { return killed }
	_, write := s.objects.Write(t.Context(), "note", []byte("1"), "")
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
		if err := os.Mkdir(path, dirMode); err != nil {
			tb.Fatal(err)
		}
		var disk sync.Mutex // held while it syncs nothing
		return leasetest.Storage{
			Open: func(string) (driver.Objects, error) {
				s, err := New(path)
				if err != nil {
					return nil, err
				}
				o := s.(*store).objects
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
