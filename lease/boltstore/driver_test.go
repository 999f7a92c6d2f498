package boltstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func TestDriver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder")
	path := filepath.Join(folder, "leases.db")
	// The folder may be on a disk that is not mounted yet.
	if _, err := driver.Open(t.Context(), "bolt:"+path, driver.NodeRange{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the folder: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatalf("it was made: %v", err)
	}
	s, err := driver.Open(t.Context(), "bolt:"+path, driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: time.Minute})
	if err != nil || g.Nodes != driver.DefaultBlockSize {
		t.Errorf("grant %+v, %v", g, err)
	}
	if c, ok := s.(driver.CodecStore); !ok || c.Codec() == nil {
		t.Error("the file's own secret is out of reach")
	}
	if blocks, err := s.List(t.Context()); err != nil || len(blocks) != 1 {
		t.Errorf("blocks %v, %v", blocks, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	if _, err := driver.Open(t.Context(), "bolt:", driver.NodeRange{}); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("no path: %v", err)
	}
}

// What a program says of its use is checked before there is a file.
func TestUse(t *testing.T) {
	own := driver.NodeRange{First: 64, Nodes: 64}
	for _, c := range []struct {
		nodes  driver.NodeRange
		secret driver.Secret
		ttl    time.Duration
		waits  time.Duration
		bad    bool
	}{
		{driver.NodeRange{}, driver.AnySecret, 0, 0, false},
		{driver.NodeRange{}, driver.SharedSecret, 0, 0, true},
		{own, driver.AnySecret, 0, lease.DefaultTTL, false},
		{own, driver.SharedSecret, 0, lease.DefaultTTL, false},
		{own, driver.SharedSecret, 2 * time.Hour, 2 * time.Hour, false},
		{own, driver.SharedSecret, time.Minute, time.Minute, false},
		{own, driver.OwnSecret, 2 * time.Hour, 0, false},
	} {
		path := newPath(t)
		s, err := driver.Open(t.Context(), "bolt:"+path, c.nodes, driver.WithSecret(c.secret), driver.WithLongestTTL(c.ttl))
		if _, statErr := os.Stat(path); c.bad != errors.Is(err, lease.ErrInvalidRequest) || c.bad != (statErr != nil) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.bad {
			continue
		}
		now := time.Now()
		g, err := s.Acquire(t.Context(), lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: 3 * time.Hour})
		if c.waits == 0 {
			if want := max(c.ttl, lease.DefaultTTL); err != nil || g.End.Sub(g.Start) < want-2*time.Second || g.End.Sub(g.Start) > want {
				t.Errorf("%+v: %s, %v", c, g.End.Sub(g.Start), err)
			}
			continue
		}
		blocks, listErr := s.List(t.Context())
		if !errors.Is(err, lease.ErrNoFreeNode) || listErr != nil || len(blocks) != 8 ||
			blocks[0].GrantedUntil.Sub(now).Round(10*time.Second) != c.waits {
			t.Errorf("%+v: %v; %d blocks, %v", c, err, len(blocks), listErr)
		}
	}
}
