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

	path = filepath.Join(t.TempDir(), "leases.db")
	s, err = driver.Open(t.Context(), "bolt:"+path, driver.NodeRange{First: 64, Nodes: 64, BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), 112); err != nil {
		t.Errorf("block 112+16: %v", err)
	}
	for _, node := range []uint32{0, 72, 128} {
		if _, err := s.Get(t.Context(), node); !errors.Is(err, lease.ErrInvalidRequest) {
			t.Errorf("block %d: %v", node, err)
		}
	}
	if _, err := driver.Open(t.Context(), "bolt:", driver.NodeRange{}); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("no path: %v", err)
	}
}

// The least block and the least range are not taken for none.
func TestDriverWithOneNode(t *testing.T) {
	s, err := driver.Open(t.Context(), "bolt:"+file(t), driver.NodeRange{First: 5, Nodes: 1, BlockSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := s.List(t.Context()) // they are reserved at first
	if err != nil || len(blocks) != 1 || blocks[0].Node != 5 || blocks[0].Nodes != 1 {
		t.Errorf("blocks %+v, %v; want 5+1", blocks, err)
	}
}
