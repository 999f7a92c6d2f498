package boltstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a store's clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t *testing.T, path string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

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

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "leases.db") }

func TestGrantsOutliveTheProcess(t *testing.T) {
	path, c := file(t), newClock()
	s := open(t, path, WithClock(c))
	first := acquire(t, s, request(start))
	second := acquire(t, s, request(start))
	if first.Node != 0 || second.Node != 8 || first.Nodes != 8 {
		t.Fatalf("granted nodes %d+%d and %d+%d, want 0+8 and 8+8", first.Node, first.Nodes, second.Node, second.Nodes)
	}
	if want := start.Add(time.Minute); !first.End.Equal(want) {
		t.Fatalf("granted until %s, want %s", first.End, want)
	}
	if err := s.Release(t.Context(), first, lease.NewNonce(), start.Add(1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}

	s = open(t, path, WithClock(c)) // another process
	if g := acquire(t, s, request(start.Add(time.Second))); g.Node != 16 {
		t.Errorf("granted node %d within the seconds used, want 16", g.Node)
	}
	if g := acquire(t, s, request(start.Add(2*time.Second))); g.Node != 0 {
		t.Errorf("granted node %d after the release, want 0", g.Node)
	}
	renewed, err := s.Renew(t.Context(), second, lease.Request{Nonce: lease.NewNonce(), Now: start.Add(30 * time.Second), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), second.Node); err != nil || got != renewed {
		t.Errorf("Get gives %v, %v; Renew gave %v", got, err, renewed)
	}
	blocks, err := s.List(t.Context())
	if err != nil || len(blocks) != 3 || blocks[1].Nonce != renewed.Nonce {
		t.Errorf("List gives %v, %v; want 3 blocks", blocks, err)
	}
}

func TestFillsGaps(t *testing.T) {
	c := newClock()
	s := open(t, file(t), WithClock(c), WithNodes(0, 32), WithMaxTTL(time.Second))
	if _, err := s.Acquire(t.Context(), request(start)); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Fatalf("a new file with nodes of a fleet granted one: %v", err)
	}
	c.Add(time.Second)
	now := c.Now()
	// Delete the middle block's record: it counts as never granted.
	if err := s.update(t.Context(), func(tx *bbolt.Tx) error { return tx.Bucket(blocksBucket).Delete(keyOf(8)) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint32{0, 8, 16, 24} {
		if g := acquire(t, s, request(now)); g.Node != want {
			t.Fatalf("granted node %d, want %d", g.Node, want)
		}
	}
	_, err := s.Acquire(t.Context(), request(now))
	if !errors.Is(err, lease.ErrNoFreeNode) || !strings.Contains(err.Error(), "2026-01-02T03:04:07Z") {
		t.Fatalf("the fifth of four gives %v, want ErrNoFreeNode and when", err)
	}
}

func TestLongestTTL(t *testing.T) {
	c := newClock()
	s := open(t, file(t), WithClock(c), WithMaxTTL(10*time.Second))
	g := acquire(t, s, request(start))
	if want := start.Add(10 * time.Second); !g.End.Equal(want) {
		t.Errorf("granted until %s, want %s", g.End, want)
	}
	c.Add(5 * time.Second)
	g, err := s.Renew(t.Context(), g, lease.Request{Nonce: lease.NewNonce(), Now: c.Now(), TTL: time.Hour})
	if want := start.Add(15 * time.Second); err != nil || !g.End.Equal(want) {
		t.Errorf("renewed until %s, %v; want %s", g.End, err, want)
	}
}

func TestClockAhead(t *testing.T) {
	s := open(t, file(t), WithClock(newClock()))
	if _, err := s.Acquire(t.Context(), request(start.Add(2*time.Minute))); !errors.Is(err, lease.ErrClockAhead) {
		t.Errorf("Acquire two minutes ahead: %v", err)
	}
	// Nothing reaches further than the longest TTL from the store's time.
	if g := acquire(t, s, lease.Request{Nonce: lease.NewNonce(), Now: start.Add(30 * time.Second), TTL: lease.DefaultTTL}); g.End.After(start.Add(lease.DefaultTTL)) {
		t.Errorf("granted until %s to a clock that is ahead", g.End)
	}
	short := open(t, file(t), WithClock(newClock()), WithMaxTTL(10*time.Second))
	if _, err := short.Acquire(t.Context(), request(start.Add(20*time.Second))); !errors.Is(err, lease.ErrClockAhead) {
		t.Errorf("Acquire further ahead than the longest TTL: %v", err)
	}
	g := acquire(t, s, request(start))
	if _, err := s.Renew(t.Context(), g, request(start.Add(2*time.Minute))); !errors.Is(err, lease.ErrClockAhead) {
		t.Errorf("Renew two minutes ahead: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	path := file(t)
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
	if other := id(open(t, file(t))); other == first {
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
	path, c := file(t), newClock()
	share := []Option{WithClock(c), WithNodes(64, 16), WithMaxTTL(time.Minute)}
	open(t, path, share...)
	c.Add(30 * time.Second)
	s := open(t, path, share...) // opening it again does not restart the wait
	if _, err := s.Acquire(t.Context(), request(c.Now())); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Fatalf("granted within the longest TTL: %v", err)
	}
	c.Add(30 * time.Second)
	if g := acquire(t, s, request(c.Now())); g.Node != 64 {
		t.Errorf("granted node %d, want 64", g.Node)
	}

	// Other nodes are new to the file, too.
	s = open(t, path, WithClock(c), WithNodes(0, 16), WithMaxTTL(time.Minute))
	if _, err := s.Acquire(t.Context(), request(c.Now())); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("granted new nodes within the longest TTL: %v", err)
	}
}

func TestRaise(t *testing.T) {
	s := open(t, file(t), WithClock(newClock()), WithBlockSize(1<<13))
	g := acquire(t, s, request(start))
	until := start.Add(time.Hour)
	if err := s.Raise(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), g, request(start)); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew after Raise: %v", err)
	}
	if _, err := s.Acquire(t.Context(), request(start)); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("Acquire after Raise: %v", err)
	}
	blocks, err := s.List(t.Context())
	if err != nil || len(blocks) != 16 {
		t.Fatalf("List gives %d blocks, %v; want all 16", len(blocks), err)
	}
	if err := s.Raise(t.Context(), time.Unix(randflake.EndOfLife+1, 0)); !errors.Is(err, randflake.ErrEndOfLife) {
		t.Errorf("Raise past the end of life: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	good := func(t *testing.T) string {
		path := file(t)
		acquire(t, open(t, path), lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute})
		return path
	}
	edit := func(t *testing.T, change func(*bbolt.Tx) error) string {
		path := good(t)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Update(change); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rewrite := func(t *testing.T, change func([]byte) []byte) string {
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
	tests := []struct {
		name string
		path func(*testing.T) string
		want error
		opts []Option
	}{
		{"other block size", func(t *testing.T) string {
			path := file(t)
			open(t, path, WithBlockSize(16))
			return path
		}, lease.ErrBlockSize, []Option{WithBlockSize(8)}},
		{"newer schema", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(schemaKey, uint64Bytes(3)) })
		}, lease.ErrSchemaVersion, nil},
		{"someone else's", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucket([]byte("a"))
				return errors.Join(err, tx.DeleteBucket(metaBucket))
			})
		}, lease.ErrSchemaVersion, nil},
		{"no secret", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(secretKey) })
		}, ErrCorrupt, nil},
		{"changed record", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error {
				v := bytes.Clone(tx.Bucket(blocksBucket).Get(keyOf(0)))
				v[10]++
				return tx.Bucket(blocksBucket).Put(keyOf(0), v)
			})
		}, ErrCorrupt, nil},
		{"short record", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error { return tx.Bucket(blocksBucket).Put(keyOf(0), []byte{1}) })
		}, ErrCorrupt, nil},
		{"no node", func(t *testing.T) string {
			return edit(t, func(tx *bbolt.Tx) error { return tx.Bucket(blocksBucket).Put(keyOf(3), make([]byte, recordLen)) })
		}, ErrCorrupt, nil},
		{"text", func(t *testing.T) string {
			return rewrite(t, func([]byte) []byte { return bytes.Repeat([]byte("no database\n"), 4000) })
		}, ErrCorrupt, nil},
		{"zeros", func(t *testing.T) string {
			return rewrite(t, func(b []byte) []byte { return make([]byte, len(b)) })
		}, ErrCorrupt, nil},
		{"cut off", func(t *testing.T) string {
			return rewrite(t, func(b []byte) []byte { return b[:2*os.Getpagesize()] })
		}, ErrCorrupt, nil},
		{"pages overwritten", func(t *testing.T) string {
			return rewrite(t, func(b []byte) []byte {
				for i := 2 * os.Getpagesize(); i < len(b); i++ {
					b[i] = 0xff
				}
				return b
			})
		}, ErrCorrupt, nil},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, nil, nil},
		{"below a file", func(t *testing.T) string { return filepath.Join(good(t), "leases.db") }, nil, nil},
		{"not writable", func(*testing.T) string { return "/proc/leases/leases.db" }, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path(t)
			s, err := Open(path, tt.opts...)
			if err == nil {
				_, err = s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute})
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if !strings.Contains(err.Error(), path) && tt.name != "not writable" {
				t.Errorf("%v does not name the file", err)
			}
			t.Log(err)
			// Nothing is left locked.
			if _, err := Open(path); errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, opt := range map[string]Option{
		"block size 3":    WithBlockSize(3),
		"block size 0":    WithBlockSize(0),
		"block size -8":   WithBlockSize(-8),
		"unaligned nodes": WithNodes(4, 8),
		"negative node":   WithNodes(-8, 8),
		"no nodes":        WithNodes(0, 0),
		"too many nodes":  WithNodes(8, 1<<17),
		"no TTL":          WithMaxTTL(0),
		"no timeout":      WithTimeout(0),
	} {
		path := file(t)
		if _, err := Open(path, opt); err == nil {
			t.Errorf("%s is taken", name)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s leaves a file behind", name)
		}
	}
}

func TestLocked(t *testing.T) {
	path := file(t)
	s := open(t, path, WithClock(newClock()), WithTimeout(100*time.Millisecond))
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), request(start)); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	slow := open2(s, time.Minute)
	if _, err := slow.Acquire(ctx, request(start)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	db.Close()
	acquire(t, s, request(start))
}

// open2 is s with another timeout.
func open2(s *Store, timeout time.Duration) *Store {
	other := *s
	other.cfg.timeout = timeout
	return &other
}

func TestCancelled(t *testing.T) {
	s := open(t, file(t), WithClock(newClock()))
	g := acquire(t, s, request(start))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.Acquire(ctx, request(start))
	_, err2 := s.Renew(ctx, g, renewal(lease.NewNonce(), g.End.Add(time.Second)))
	_, err3 := s.Get(ctx, g.Node)
	err4 := s.Release(ctx, g, lease.NewNonce(), start)
	_, err5 := s.List(ctx)
	err6 := s.Raise(ctx, start)
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v, want context.Canceled", i+1, err)
		}
	}
	if got, err := s.Get(t.Context(), g.Node); err != nil || got != g {
		t.Errorf("the block is now %v, %v; want it untouched", got, err)
	}
}

// A running process must not continue with another file: its codec has the old
// one's secret, and what others of the old file were granted is unknown to it.
func TestReplaced(t *testing.T) {
	path := file(t)
	s := open(t, path, WithClock(newClock()))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), request(start)); !errors.Is(err, ErrReplaced) {
		t.Errorf("without a file: %v, want ErrReplaced", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made again")
	}
	open(t, path)
	if _, err := s.Acquire(t.Context(), request(start)); !errors.Is(err, ErrReplaced) {
		t.Errorf("with another file: %v, want ErrReplaced", err)
	}
}

// A file put in place while a call waits for the lock of the old one.
func TestReplacedWhileWaiting(t *testing.T) {
	path, copied := file(t), file(t)
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
		_, err := s.Acquire(t.Context(), request(start))
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
	if blocks, err := open(t, path, WithClock(newClock())).List(t.Context()); err != nil || len(blocks) != 1 {
		t.Errorf("the file in place has %d grants, %v; want the one that was answered", len(blocks), err)
	}
}

func TestConcurrentAcquire(t *testing.T) {
	path, c := file(t), newClock()
	const stores, each = 4, 10
	grants := make(chan lease.Grant, stores*each)
	var wg sync.WaitGroup
	for range stores {
		s := open(t, path, WithClock(c), WithTimeout(time.Minute))
		wg.Go(func() {
			for range each {
				g, err := s.Acquire(t.Context(), request(start))
				if err != nil {
					t.Error(err)
					return
				}
				grants <- g
			}
		})
	}
	wg.Wait()
	close(grants)
	seen := map[uint32]bool{}
	for g := range grants {
		if seen[g.Node] {
			t.Errorf("node %d was granted twice", g.Node)
		}
		seen[g.Node] = true
	}
	if len(seen) != stores*each {
		t.Errorf("%d blocks were granted, want %d", len(seen), stores*each)
	}
}

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-time.Minute), TTL: time.Minute}
}
