package boltstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/randflake"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a store's clock that a test moves.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time { return c.now }

func open(t *testing.T, path string, opts ...Option) *Store {
	t.Helper()
	return openFor(t, path, driver.Options{}, opts...)
}

func openFor(t *testing.T, path string, use driver.Options, opts ...Option) *Store {
	t.Helper()
	s, err := Open(path, use, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// share is nodes of a fleet.
func share(first, n uint32) driver.NodeRange { return driver.NodeRange{First: first, Nodes: n} }

func request(now time.Time) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: time.Minute}
}

func acquire(t *testing.T, s *Store, r lease.Request) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// wantRefused checks the error of an Acquire.
func wantRefused(t *testing.T, what string, s *Store, now time.Time, want error) {
	t.Helper()
	if g, err := s.Acquire(t.Context(), request(now)); !errors.Is(err, want) {
		t.Errorf("%s: granted %+v, %v; want %v", what, g, err, want)
	}
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "leases.db") }

func TestGrantsOutliveTheProcess(t *testing.T) {
	path, c := newPath(t), newClock()
	one := driver.Options{Nodes: share(8, 8), Secret: driver.OwnSecret}
	s := openFor(t, path, one, WithClock(c))
	g := acquire(t, s, request(start))
	if want := start.Add(time.Minute); g.Node != 8 || g.Nodes != 8 || !g.End.Equal(want) {
		t.Fatalf("granted %+v, want nodes 8+8 until %s", g, want)
	}
	if err := s.Release(t.Context(), g, lease.NewNonce(), start.Add(1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}

	s = openFor(t, path, one, WithClock(c)) // another process
	wantRefused(t, "within the seconds used", s, start.Add(time.Second), lease.ErrNoFreeNode)
	g = acquire(t, s, request(start.Add(2*time.Second)))
	renewed, err := s.Renew(t.Context(), g, renewal(lease.NewNonce(), start.Add(90*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), g.Node); err != nil || got != renewed {
		t.Errorf("Get gives %v, %v; Renew gave %v", got, err, renewed)
	}
	blocks, err := open(t, path, WithClock(c)).List(t.Context())
	if err != nil || len(blocks) != 1 || blocks[0].Nonce != renewed.Nonce {
		t.Errorf("List gives %v, %v; want one block", blocks, err)
	}
}

func TestClockAhead(t *testing.T) {
	s := open(t, newPath(t), WithClock(newClock()))
	wantRefused(t, "two minutes ahead", s, start.Add(2*time.Minute), lease.ErrClockAhead)
	// Nothing reaches further than the longest TTL from the store's time.
	if g := acquire(t, s, lease.Request{Nonce: lease.NewNonce(), Now: start.Add(30 * time.Second), TTL: lease.DefaultTTL}); g.End.After(start.Add(lease.DefaultTTL)) {
		t.Errorf("granted until %s to a clock that is ahead", g.End)
	}
	short := openFor(t, newPath(t), driver.Options{LongestTTL: 10 * time.Second}, WithClock(newClock()))
	wantRefused(t, "further ahead than the longest TTL", short, start.Add(20*time.Second), lease.ErrClockAhead)
	g := acquire(t, s, request(start))
	if _, err := s.Renew(t.Context(), g, renewal(lease.NewNonce(), start.Add(48*time.Hour))); !errors.Is(err, lease.ErrClockAhead) {
		t.Errorf("Renew for two days: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	path := newPath(t)
	id := func(s *Store) randflake.ID {
		id, err := s.Codec().Encode(randflake.Parts{Time: start})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := id(open(t, path))
	if again := id(open(t, path)); again != first {
		t.Error("the secret changed when the file was opened again")
	}
	if other := id(open(t, newPath(t))); other == first {
		t.Error("two files have one secret")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// A fleet's secret outlives a host's file, so a new file must wait until
// nothing that the lost one granted can go on.
func TestShareOfAFleetWaits(t *testing.T) {
	path, c := newPath(t), newClock()
	with := func(first, n uint32) *Store {
		return openFor(t, path, driver.Options{Nodes: share(first, n), LongestTTL: time.Minute}, WithClock(c))
	}
	waits := func(s *Store, until string) {
		t.Helper()
		_, err := s.Acquire(t.Context(), request(c.now))
		if !errors.Is(err, lease.ErrNoFreeNode) || !errors.Is(err, ErrNewFile) {
			t.Fatalf("granted within the longest TTL: %v", err)
		}
		for _, text := range []string{"until " + until, "is new to its nodes", "own secret does not wait"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v does not say %q", err, text)
			}
		}
	}
	waits(with(64, 16), "2026-01-02T03:05:05Z")
	c.now = c.now.Add(30 * time.Second)
	s := with(64, 16) // opening it again does not restart the wait
	waits(s, "2026-01-02T03:05:05Z")
	c.now = c.now.Add(30 * time.Second)
	for range 2 {
		if g := acquire(t, s, request(c.now)); g.Node != 64 && g.Node != 72 {
			t.Errorf("granted node %d, want 64 or 72", g.Node)
		}
	}
	if _, err := s.Acquire(t.Context(), request(c.now)); !errors.Is(err, lease.ErrNoFreeNode) || strings.Contains(err.Error(), "is new") {
		t.Errorf("the third of two: %v", err)
	}

	// Other nodes are new to the file, too, and so are more nodes.
	waits(with(0, 16), "2026-01-02T03:06:05Z")
	waits(with(64, 32), "2026-01-02T03:06:05Z")
	// With the file's own secret no lost file matters.
	acquire(t, openFor(t, path, driver.Options{Nodes: share(128, 8), Secret: driver.OwnSecret}, WithClock(c)), request(c.now))
}

// An empty file is one that another process has just created: only Open may write into it.
func TestEmptyFile(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, driver.Options{Existing: true})
	if info, statErr := os.Stat(path); !errors.Is(err, errEmpty) || statErr != nil || info.Size() != 0 {
		t.Errorf("reading an empty file: %v; %v, %v", err, info, statErr)
	}
	open(t, path)
}

// Listing leases with nodes that are new to the file writes nothing: whoever has
// a grant keeps it.
func TestListWritesNothing(t *testing.T) {
	path, c := newPath(t), newClock()
	s := open(t, path, WithClock(c))
	g := acquire(t, s, request(start))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := openFor(t, path, driver.Options{Nodes: share(0, 1<<17), Existing: true}, WithClock(c))
	if blocks, err := other.List(t.Context()); err != nil || len(blocks) != 1 {
		t.Errorf("%d blocks, %v", len(blocks), err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed, %v", err)
	}
	if _, err := s.Renew(t.Context(), g, renewal(lease.NewNonce(), start.Add(time.Hour))); err != nil {
		t.Error(err)
	}
	path = newPath(t)
	if _, err := Open(path, driver.Options{Existing: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file that must exist: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was created")
	}
}

// A panic that is not the file's fault is not taken for damage.
func TestPanicOfAClock(t *testing.T) {
	path := newPath(t)
	g := acquire(t, open(t, path, WithClock(newClock())), request(start))
	func() {
		defer func() {
			if r := recover(); r != "no clock" {
				t.Errorf("renew: %v", r)
			}
		}()
		_, _ = open(t, path, WithClock(brokenClock{})).Renew(t.Context(), g, renewal(lease.NewNonce(), start))
	}()
	acquire(t, open(t, path, WithClock(newClock())), request(start)) // nothing is left locked
}

type brokenClock struct{}

func (brokenClock) Now() time.Time { panic("no clock") }

// A machine that was restored from a snapshot may not be the only one with this
// file.
func TestRestoredMachine(t *testing.T) {
	for what, restore := range map[string]func(*Store){
		"vmclock":  func(s *Store) { s.file.machine = func() uint64 { return s.file.life + 1 } },
		"Restored": (*Store).Restored,
	} {
		s := open(t, newPath(t), WithClock(newClock()))
		g := acquire(t, s, request(start))
		restore(s)
		_, err1 := s.Acquire(t.Context(), request(start))
		_, err2 := s.Renew(t.Context(), g, renewal(lease.NewNonce(), start.Add(time.Hour)))
		for _, err := range []error{err1, err2, s.Release(t.Context(), g, lease.NewNonce(), start)} {
			if !errors.Is(err, ErrCopied) {
				t.Errorf("%s: got %v, want ErrCopied", what, err)
			}
		}
	}
}

func TestBadFiles(t *testing.T) {
	good := func(t *testing.T) string {
		path := newPath(t)
		acquire(t, open(t, path), request(time.Now()))
		return path
	}
	edit := func(change func(*bbolt.Tx, *bbolt.Bucket) error) func(*testing.T) string {
		return func(t *testing.T) string {
			path := good(t)
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Update(func(tx *bbolt.Tx) error { return change(tx, tx.Bucket(bucket)) }); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	identity := func(text string) func(*testing.T) string {
		return edit(func(_ *bbolt.Tx, b *bbolt.Bucket) error { return b.Put(identityKey, []byte(text)) })
	}
	rewrite := func(change func([]byte) []byte) func(*testing.T) string {
		return func(t *testing.T) string {
			path := good(t)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(b), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	for _, tt := range []struct {
		name string
		path func(*testing.T) string
		want error
	}{
		{"newer format", identity(`{"format":9}`), lease.ErrSchemaVersion},
		{"no secret", identity(`{"format":1}`), ErrCorrupt},
		{"no identity", identity(""), ErrCorrupt},
		{"someone else's", edit(func(tx *bbolt.Tx, _ *bbolt.Bucket) error {
			_, err := tx.CreateBucket([]byte("a"))
			return errors.Join(err, tx.DeleteBucket(bucket))
		}), lease.ErrSchemaVersion},
		{"changed page", edit(func(_ *bbolt.Tx, b *bbolt.Bucket) error {
			name, data := b.Cursor().Seek([]byte("page-"))
			return b.Put(name, bytes.Replace(data, []byte(`"version":1`), []byte(`"version":2`), 1))
		}), pages.ErrEdited},
		{"text", rewrite(func([]byte) []byte { return bytes.Repeat([]byte("no database\n"), 4000) }), ErrCorrupt},
		{"zeros", rewrite(func(b []byte) []byte { return make([]byte, len(b)) }), ErrCorrupt},
		{"cut off", rewrite(func(b []byte) []byte { return b[:2*os.Getpagesize()] }), ErrCorrupt},
		{"pages overwritten", rewrite(func(b []byte) []byte {
			head := 2 * os.Getpagesize()
			return append(b[:head:head], bytes.Repeat([]byte{0xff}, len(b)-head)...)
		}), ErrCorrupt},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, nil},
		{"below a file", func(t *testing.T) string { return filepath.Join(good(t), "leases.db") }, nil},
		{"not writable", func(*testing.T) string { return "/proc/leases/leases.db" }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path(t)
			s, err := Open(path, driver.Options{})
			if err == nil {
				_, err = s.Acquire(t.Context(), request(time.Now()))
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if !strings.Contains(err.Error(), path) && tt.name != "not writable" {
				t.Errorf("%v does not name the file", err)
			}
			// Nothing is left locked.
			if _, err := Open(path, driver.Options{}); errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, c := range map[string]struct {
		use  driver.Options
		opts []Option
	}{
		"block size 3":            {driver.Options{Nodes: driver.NodeRange{BlockSize: 3}}, nil},
		"unaligned nodes":         {driver.Options{Nodes: share(4, 8)}, nil},
		"no nodes":                {driver.Options{Nodes: driver.NodeRange{First: 8}}, nil},
		"too many nodes":          {driver.Options{Nodes: share(8, 1<<17)}, nil},
		"a fleet's secret":        {driver.Options{Secret: driver.SharedSecret}, nil},
		"longest TTL below 1 s":   {driver.Options{LongestTTL: time.Millisecond}, nil},
		"longest TTL above a day": {driver.Options{LongestTTL: 48 * time.Hour}, nil},
		"no timeout":              {driver.Options{}, []Option{WithTimeout(0)}},
	} {
		path := newPath(t)
		if _, err := Open(path, c.use, c.opts...); err == nil {
			t.Errorf("%s is taken", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s leaves a file behind", name)
		}
	}
}

func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path, WithClock(newClock()), WithTimeout(100*time.Millisecond))
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "locked", s, start, ErrLocked)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	s.file.timeout = time.Minute
	if _, err := s.Acquire(ctx, request(start)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	db.Close()
	acquire(t, s, request(start))
}

// A running process must not continue with another file: its codec has the old
// one's secret, and what others of the old file were granted is unknown to it.
func TestReplaced(t *testing.T) {
	path := newPath(t)
	s := open(t, path, WithClock(newClock()))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "without a file", s, start, ErrReplaced)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made again")
	}
	open(t, path)
	wantRefused(t, "with another file", s, start, ErrReplaced)
}

// A file put in place while a write waits for the lock of the old one.
func TestReplacedWhileWaiting(t *testing.T) {
	path, copied := newPath(t), newPath(t)
	s := open(t, path, WithClock(newClock()))
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

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}
