package boltstore

import (
	"bytes"
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
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, path string) *store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*store)
}

func acquire(t *testing.T, s *store, r lease.Request) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "leases.db") }

func TestGrantsOutliveTheProcess(t *testing.T) {
	path := newPath(t)
	g := acquire(t, open(t, path), calls.Request(start))
	s := open(t, path) // another process
	if got, err := s.Get(t.Context(), g.Node); err != nil || got != g {
		t.Errorf("Get gives %v, %v; want %v", got, err, g)
	}
	if other := acquire(t, s, calls.Request(start)); other.Node == g.Node {
		t.Errorf("granted again: %+v", other)
	}
	if err := s.Release(t.Context(), g, lease.NewNonce(), start.Add(1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, path).Get(t.Context(), g.Node); err != nil || !got.End.Equal(start.Add(2*time.Second)) {
		t.Errorf("after the release: Get gives %v, %v", got, err)
	}
}

// fingerprint returns that of a file's secret, with which the file describes itself.
func fingerprint(t *testing.T, s driver.Embedded) string {
	t.Helper()
	codec, err := s.Codec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Describe(t.Context())
	if want := []string{lease.Fingerprint(codec, d.ID)}; err != nil || !slices.Equal(d.Secrets, want) {
		t.Errorf("the file has the secrets %q, %v; want %q", d.Secrets, err, want)
	}
	return lease.Fingerprint(codec, "")
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

// Processes that start at once on a host without a file use one, with one secret.
func TestFirstUseByProcesses(t *testing.T) {
	const file = "BOLTSTORE_TEST_FILE"
	if path := os.Getenv(file); path != "" {
		s, err := driver.Open("bolt:" + path)
		if err != nil {
			t.Fatal(err)
		}
		codec, err := driver.Ensure(t.Context(), s.(driver.Embedded), lease.DefaultTTL)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("secret", lease.Fingerprint(codec, ""), fingerprint(t, s.(driver.Embedded)))
		return
	}
	path := newPath(t)
	var said [6]string
	var all sync.WaitGroup
	for i := range said {
		all.Go(func() { said[i], _, _ = strings.Cut(again(t, file+"="+path), "\n") })
	}
	all.Wait()
	secret := fingerprint(t, open(t, path))
	if fingerprint(t, open(t, newPath(t))) == secret {
		t.Error("two files have one secret")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for _, text := range said {
		if text != "secret "+secret+" "+secret {
			t.Errorf("a process has %q, the file has %s", text, secret)
		}
	}
}

// Nothing but Create and Ensure creates a file, or writes into one that another process has just
// created.
func TestMissingFile(t *testing.T) {
	path := newPath(t)
	for what, size := range map[string]int64{"missing": -1, "empty": 0} {
		if size == 0 {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := driver.Open("bolt:" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, describe := s.Describe(t.Context())
		_, acquire := s.Acquire(t.Context(), calls.Request(time.Now()))
		_, raise := s.Raise(t.Context(), time.Now())
		_, codec := s.(driver.Embedded).Codec(t.Context())
		for call, err := range map[string]error{"describe": describe, "acquire": acquire, "raise": raise, "codec": codec} {
			if !errors.Is(err, lease.ErrNoStore) {
				t.Errorf("%s, %s: got %v, want %v", what, call, err, lease.ErrNoStore)
			}
		}
		info, err := os.Stat(path)
		if size < 0 && !errors.Is(err, fs.ErrNotExist) || size == 0 && (err != nil || info.Size() != 0) {
			t.Errorf("%s: the file is there, or was changed: %v, %v", what, info, err)
		}
		_ = os.Remove(path)
	}
	if _, err := open(t, path).file.Write(t.Context(), "note", nil, "1"); !errors.Is(err, driver.ErrChanged) {
		t.Errorf("write with a version that is not the object's: got %v", err)
	}
	_ = os.Remove(path)
	s, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.(*store).file.Write(t.Context(), "note", nil, "")
	if _, missing := os.Stat(path); !errors.Is(err, driver.ErrChanged) || !errors.Is(missing, fs.ErrNotExist) {
		t.Errorf("write without a file: got %v and %v", err, missing)
	}
}

// A creation that fails, or is killed at any moment, leaves nothing: it is one transaction of bbolt.
func TestInterruptedCreate(t *testing.T) {
	s, err := New(newPath(t))
	if err != nil {
		t.Fatal(err)
	}
	err = s.(*store).file.transact(t.Context(), createFile, func(*bbolt.Tx) error { return context.Canceled }) // in the middle
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := s.Describe(t.Context()); !errors.Is(err, lease.ErrNoStore) {
		t.Errorf("after half a creation: %v", err)
	}
	d, err := driver.NewDescription(lease.Description{})
	if err = errors.Join(err, s.Create(t.Context(), d)); err != nil {
		t.Error(err)
	}
	before := fingerprint(t, s)
	d.ID = lease.NewNonce()
	if err := s.Create(t.Context(), d); !errors.Is(err, lease.ErrExists) {
		t.Errorf("another store: %v", err)
	}
	if after := fingerprint(t, s); after != before {
		t.Error("the secret has changed")
	}
}

func TestMissingFolder(t *testing.T) {
	if _, err := driver.Open("bolt:"); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("without a path: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "a folder")
	s, err := driver.Open("bolt:" + filepath.Join(folder, "leases.db")) // it may be mounted later
	if err != nil {
		t.Fatal(err)
	}
	_, err = driver.Ensure(t.Context(), s.(driver.Embedded), lease.DefaultTTL)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), folder+" does not exist; create it") {
		t.Errorf("without the folder: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatalf("it was created: %v", err)
	}
	if _, err := driver.Ensure(t.Context(), s.(driver.Embedded), lease.DefaultTTL); err != nil {
		t.Error(err)
	}
}

// A machine that was restored from a snapshot may not be the only one with this
// file.
func TestRestoredMachine(t *testing.T) {
	for what, restore := range map[string]func(*store){
		"vmclock":   func(s *store) { s.file.machine = func() uint64 { return s.file.life + 1 } },
		"OnRestore": (*store).OnRestore,
	} {
		s := open(t, newPath(t))
		g := acquire(t, s, calls.Request(start))
		restore(s)
		_, err1 := s.Acquire(t.Context(), calls.Request(start))
		_, err2 := s.Renew(t.Context(), g, calls.Renewal(g))
		for _, err := range []error{err1, err2, s.Release(t.Context(), g, lease.NewNonce(), start)} {
			if !errors.Is(err, ErrCopied) {
				t.Errorf("%s: got %v, want ErrCopied", what, err)
			}
		}
	}
}

func TestBadFiles(t *testing.T) {
	edit := func(change func(*bbolt.Bucket) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket(bucket)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	rewrite := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err = errors.Join(err, os.WriteFile(path, change(b), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, string)
		want   error
	}{
		{"half a secret", edit(func(b *bbolt.Bucket) error { return b.Put(secretKey, []byte("12345678")) }), ErrCorrupt},
		{"newer format", edit(func(b *bbolt.Bucket) error { return b.Put([]byte("config"), []byte(`{"format":9}`)) }), lease.ErrSchemaVersion},
		{"someone else's", edit(func(b *bbolt.Bucket) error {
			_, err := b.Tx().CreateBucket([]byte("a"))
			return errors.Join(err, b.Tx().DeleteBucket(bucket))
		}), lease.ErrSchemaVersion},
		{"changed page", edit(func(b *bbolt.Bucket) error {
			return b.ForEach(func(name, data []byte) error {
				return b.Put(name, bytes.Replace(data, []byte(`"Version":1`), []byte(`"Version":2`), 1))
			})
		}), driver.ErrEdited},
		{"text", rewrite(func([]byte) []byte { return bytes.Repeat([]byte("no database\n"), 4000) }), ErrCorrupt},
		{"cut off", rewrite(func(b []byte) []byte { return b[:2*os.Getpagesize()] }), ErrCorrupt},
		{"pages overwritten", rewrite(func(b []byte) []byte {
			head := 2 * os.Getpagesize()
			return append(b[:head:head], bytes.Repeat([]byte{0xff}, len(b)-head)...)
		}), ErrCorrupt},
		{"a directory", func(_ *testing.T, path string) { _ = errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := newPath(t)
			acquire(t, open(t, path), calls.Request(time.Now()))
			tt.damage(t, path)
			s, err := Open(path)
			if err == nil {
				_, err = s.List(t.Context())
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want %v and the path", err, tt.want)
			}
			// Nothing is left locked.
			s, _ = New(path)
			if _, err := s.(*store).file.Write(t.Context(), "note", nil, ""); errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
	}
}

func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	s.file.timeout = 100 * time.Millisecond
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), calls.Request(start)); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want %v", err, ErrLocked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	s.file.timeout = time.Minute
	if _, err := s.Acquire(ctx, calls.Request(start)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	db.Close()
	acquire(t, s, calls.Request(start))
}

// A file put in place while a write waits for the lock of the old one.
func TestReplacedWhileWaiting(t *testing.T) {
	path, copied := newPath(t), newPath(t)
	s := open(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.file.Write(t.Context(), "note", []byte("1"), "")
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if o, err := s.file.Read(t.Context(), "note"); err != nil || o.Version != "1" {
		t.Errorf("the file in place has %q, %v; want what was written", o.Version, err)
	}
}
