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
	g, err := s.Acquire(t.Context(), request(time.Now()))
	if err != nil || g.Nodes != driver.DefaultBlockSize {
		t.Errorf("grant %+v, %v", g, err)
	}
	if c, ok := s.(driver.CodecStore); !ok || c.Codec() == nil {
		t.Error("the file's own secret is out of reach")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	if _, err := driver.Open(t.Context(), "bolt:", driver.NodeRange{}); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("no path: %v", err)
	}
}

// A host's share of a fleet's nodes waits for the longest TTL, unless the secret is the file's own.
func TestUse(t *testing.T) {
	own := share(64, 64)
	for _, c := range []struct {
		nodes      driver.NodeRange
		secret     driver.Secret
		ttl, waits time.Duration
	}{
		{driver.NodeRange{}, driver.AnySecret, 0, 0},
		{own, driver.AnySecret, 0, lease.DefaultTTL},
		{own, driver.SharedSecret, 2 * time.Hour, 2 * time.Hour},
		{own, driver.SharedSecret, time.Minute, time.Minute},
		{own, driver.OwnSecret, 2 * time.Hour, 0},
	} {
		s, err := driver.Open(t.Context(), "bolt:"+newPath(t), c.nodes, driver.WithSecret(c.secret), driver.WithLongestTTL(c.ttl))
		if err != nil {
			t.Fatal(err)
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
			blocks[0].End.Sub(now).Round(10*time.Second) != c.waits {
			t.Errorf("%+v: %v; %d blocks, %v", c, err, len(blocks), listErr)
		}
	}
}
