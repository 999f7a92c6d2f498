package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// fingerprint returns that of a directory's secret, with which its store describes itself.
func fingerprint(t *testing.T, s stores.Store) string {
	t.Helper()
	k, err := s.Secrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	codec := k.Codec()
	d, err := s.Describe(t.Context())
	if want := []string{d.Fingerprint(codec)}; err != nil ||
		!slices.Equal(d.Secrets, want) {
		t.Errorf("the store has the secrets %q, %v; want %q", d.Secrets, err, want)
	}
	return lease.Description{}.Fingerprint(codec)
}

// again runs this test in another process, and returns its output.
func again(t *testing.T, setting string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), setting)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// Processes that start at once on a host without a directory use one, with one secret.
func TestFirstUseByProcesses(t *testing.T) {
	const dir = "FILESTORE_TEST_DIR"
	if path := os.Getenv(dir); path != "" {
		s, err := stores.Open("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := stores.OwnSecret(s)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("secret", lease.Description{}.Fingerprint(codec),
			fingerprint(t, s))
		return
	}
	path := newPath(t)
	var said [6]string
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() { said[i], _, _ = strings.Cut(again(t, dir+"="+path), "\n") })
	}
	all.Wait()
	secret := fingerprint(t, open(t, path))
	if fingerprint(t, open(t, newPath(t))) == secret {
		t.Error("two directories have one secret")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	for _, text := range said {
		if text != "secret "+secret+" "+secret {
			t.Errorf("a process has %q, the directory has %s", text, secret)
		}
	}
}

// Nothing but Create and Ensure creates anything.
func TestMissing(t *testing.T) {
	path := newPath(t)
	for _, what := range []string{"missing", "empty"} {
		if what == "empty" {
			if err := os.Mkdir(path, dirMode); err != nil {
				t.Fatal(err)
			}
		}
		s, err := stores.Open("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, secrets := s.Secrets(t.Context())
		g := lease.Grant{Store: calls.ID}
		for _, call := range append(calls.OnBlocks(t.Context(), s, g, time.Now()),
			calls.Call{Name: "secrets", Err: secrets}) {
			if !errors.Is(call.Err, lease.ErrNoStore) {
				t.Errorf("%s, %s: got %v, want %v", what, call.Name, call.Err, lease.ErrNoStore)
			}
		}
		files, err := os.ReadDir(path)
		if what == "missing" && !errors.Is(err, fs.ErrNotExist) || len(files) > 0 {
			t.Errorf("%s: something was created: %v, %v", what, files, err)
		}
	}
	if _, err := open(t, path).objects.Write(t.Context(), "note", nil, "1"); !errors.Is(err,
		driver.ErrChanged) {
		t.Errorf("write with a version that is not the object's: got %v", err)
	}
}

// A store that was closed creates nothing any more, and reads no secret.
func TestClosed(t *testing.T) {
	path := newPath(t)
	s := unopened(t, path)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	create := s.Create(t.Context(), lease.Description{})
	_, ensured := ensure(t, s)
	_, secrets := s.Secrets(t.Context())
	for _, err := range []error{create, ensured, secrets} {
		if !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %v, want %v", err, lease.ErrClosed)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
}

// A creation that ended at any moment is completed by the next process, with the same secret.
func TestInterruptedCreate(t *testing.T) {
	for writes := range 20 {
		path := newPath(t)
		s := unopened(t, path)
		killed, left := errors.New("killed"), writes
		s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
			if left--; left < 0 {
				return killed
			}
			return system.syncNames(root, names...)
		}
		_, err := ensure(t, s)
		if !errors.Is(err, killed) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		begun, _ := s.Describe(t.Context())
		next := open(t, path)
		d, err := next.Describe(t.Context())
		if err != nil || begun.ID != "" && d.ID != begun.ID {
			t.Errorf("after %d writes: %+v, %v; want the store %s", writes, d, err, begun.ID)
		}
		fingerprint(t, next)
		d.ID = lease.NewNonce()
		if err := next.Create(t.Context(), d); !errors.Is(err, lease.ErrExists) {
			t.Errorf("another store: %v", err)
		}
	}
}

// A secret belongs to one store: if everything but the secrets is deleted, the next store has
// another.
func TestSecretIsNotUsedAgain(t *testing.T) {
	path := newPath(t)
	before := fingerprint(t, open(t, path))
	files, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, ".secret") {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := fingerprint(t, open(t, path)); after == before {
		t.Error("two stores have one secret")
	}
}

func TestMissingParent(t *testing.T) {
	if _, err := stores.Open("file:"); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("without a path: %v", err)
	}
	parent := filepath.Join(t.TempDir(), "a directory")
	s := unopened(t, filepath.Join(parent, "leases")) // it may be mounted later
	_, err := ensure(t, s)
	if !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), parent+" does not exist; create it") {
		t.Errorf("without the parent: %v", err)
	}
	if err := os.Mkdir(parent, dirMode); err != nil {
		t.Fatalf("it was created: %v", err)
	}
	if _, err := ensure(t, s); err != nil {
		t.Error(err)
	}
}

// A directory that was put back from a copy is another one, until it has a secret of its own. The
// old secret still verifies.
func TestCopiedDirectory(t *testing.T) {
	path := newPath(t)
	before := fingerprint(t, open(t, path))
	if err := errors.Join(os.CopyFS(path+".copy", os.DirFS(path)), os.Rename(path, path+".old"),
		os.Rename(path+".copy", path)); err != nil {
		t.Fatal(err)
	}
	s := unopened(t, path)
	if _, err := ensure(t, s); !errors.Is(err, lease.ErrMoved) {
		t.Errorf("a copy: %v", err)
	}
	d, _ := s.Describe(t.Context())
	if err := s.Replace(t.Context(), d.ID, lease.NewNonce(), ""); err != nil ||
		fingerprint(t, open(t, path)) == before {
		t.Errorf("with a new secret: %v", err)
	}
	if k, err := s.Secrets(t.Context()); err != nil || len(k.Codecs()) != 2 ||
		(lease.Description{}).Fingerprint(k.Codecs()[1]) != before {
		t.Errorf("the old secret is lost: %v", err)
	}
	if err := errors.Join(os.Rename(path, path+".copy"), os.Rename(path+".old", path)); err != nil {
		t.Fatal(err)
	}
	open(t, path) // a directory may be renamed
}

// A directory that is restored to any moment of a creation or a replacement gets a secret that was
// never in use, although that of the moment may have been since.
func TestRestoredToAnInterruption(t *testing.T) {
	path, above := newPath(t), t.TempDir()
	s := unopened(t, path)
	var backups []string
	s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
		if _, err := os.Stat(filepath.Join(path, "config")); err == nil {
			backups = append(backups, filepath.Join(above, fmt.Sprint(len(backups))))
			if err := os.CopyFS(backups[len(backups)-1], os.DirFS(path)); err != nil {
				t.Error(err)
			}
		}
		return system.syncNames(root, names...)
	}
	if _, err := ensure(t, s); err != nil {
		t.Fatal(err)
	}
	used := []string{fingerprint(t, s)}
	replace := func() {
		t.Helper()
		d, err := s.Describe(t.Context())
		if errors.Is(err, lease.ErrReplacing) {
			d.ID = d.Replaced // the command is repeated
		}
		if err := s.Replace(t.Context(), d.ID, lease.NewNonce(), ""); err != nil {
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
	for _, backup := range backups {
		files, err := filepath.Glob(filepath.Join(path, "*"))
		for _, f := range files {
			err = errors.Join(err, os.Remove(f))
		}
		if err = errors.Join(err, os.CopyFS(path, os.DirFS(backup))); err != nil {
			t.Fatal(err)
		}
		replace()
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
	edit := func(name string, change func(string) string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			names, err := filepath.Glob(filepath.Join(path, name))
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err = errors.Join(err,
					os.WriteFile(name, []byte(change(string(b))), fileMode)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	remove := func(pattern string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			names, _ := filepath.Glob(filepath.Join(path, pattern))
			for _, name := range names {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, string)
		want   error // nil: any
	}{
		{"half a secret", edit("*.secret", func(s string) string { return s[:len(s)-8] }),
			driver.ErrEdited},
		{"another secret",
			edit("*.secret",
				func(s string) string { return s[:len(s)-33] + strings.Repeat("1f", 16) + "\n" }),
			driver.ErrEdited},
		{"no secret", remove("*.secret"), driver.ErrEdited},
		{"no config", remove("config"), lease.ErrExists},
		{"a file", func(t *testing.T, path string) {
			if err := errors.Join(os.RemoveAll(path),
				os.WriteFile(path, nil, fileMode)); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := newPath(t)
			acquire(t, open(t, path), calls.Request(time.Now()))
			tt.damage(t, path)
			s := unopened(t, path)
			_, err := ensure(t, s)
			if err == nil {
				_, err = s.List(t.Context())
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) ||
				!strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %v and the path", err, tt.want)
			}
		})
	}
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

func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	s.objects.timeout = time.Second
	release := hold(t, path)
	var opens atomic.Int64
	s.objects.disk.lockable = func(root *os.Root) (*os.File, error) {
		opens.Add(1)
		return system.lockable(root)
	}
	if _, err := s.Acquire(t.Context(), calls.Request(start)); !errors.Is(err, errLocked) {
		t.Errorf("got %v, want %v", err, errLocked)
	}
	// Many processes that do more than wait would keep the one that has the lock from running.
	if n := opens.Load(); n != 1 {
		t.Errorf("the directory was opened %d times while the call waited, want once", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	s.objects.timeout = time.Minute
	if _, err := s.Acquire(ctx, calls.Request(start)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	release()
	acquire(t, s, calls.Request(start))
}

// A directory put in place while a call waits for the lock of the one before.
func TestReplacedWhileWaiting(t *testing.T) {
	path, other := newPath(t), newPath(t)
	s := open(t, path)
	open(t, other)
	release := hold(t, path)
	done := make(chan error)
	go func() {
		_, err := s.objects.Write(t.Context(), "note", []byte("1"), "")
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
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
}

// A disk that does not answer ends no call later than its context, and Close at once.
func TestHungDisk(t *testing.T) {
	s := open(t, newPath(t))
	hung := make(chan struct{}, 1)
	s.objects.disk.syncNames = func(root *os.Root, names ...string) error {
		hung <- <-hung
		return system.syncNames(root, names...)
	}
	fails := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := s.Acquire(ctx, calls.Request(start)); !errors.Is(err,
			context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
			t.Errorf("got %v after %s, want the context's error", err, time.Since(began))
		}
	}
	fails()
	fails() // it waits for the first
	hung <- struct{}{}
	acquire(t, s, calls.Request(start))
	<-hung
	fails()
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
	r := calls.Request(start)
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, killed) {
		t.Errorf("what is not on the disk was granted: %v", err)
	}
	s.objects.disk = system
	acquire(t, s, r) // finds it
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
