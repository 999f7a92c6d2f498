package boltstore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// schema1 returns a file that the version with schema 1 wrote.
func schema1(t *testing.T) (path string) {
	t.Helper()
	packed, err := os.Open("testdata/schema1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path = file(t)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// meta reads a value of the file's bucket meta.
func meta(t *testing.T, path string, key []byte) (v []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bbolt.Tx) error {
		v = bytes.Clone(tx.Bucket(metaBucket).Get(key))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

// A file of schema 1 is migrated without losing a grant or the secret, and its
// processes are refused from then on: they compare the id at each call, and the
// schema when they open it.
func TestFileOfTheVersionBefore(t *testing.T) {
	path := schema1(t)
	id, secret := meta(t, path, idKey), meta(t, path, secretKey)

	if _, err := Open(path, WithBlockSize(8)); !errors.Is(err, lease.ErrBlockSize) {
		t.Errorf("another block size: %v", err)
	}
	if !bytes.Equal(meta(t, path, schemaKey), uint64Bytes(1)) || !bytes.Equal(meta(t, path, idKey), id) {
		t.Error("a file that could not be opened was changed")
	}

	c := newClock()
	s := open(t, path, WithClock(c))
	block := func(node uint32, granted time.Duration, holder string, version uint64) lease.Block {
		return lease.Block{
			Node: node, Nodes: 16, Start: start, GrantedUntil: start.Add(granted),
			Nonce: holder, Version: version,
		}
	}
	want := []lease.Block{
		block(0, time.Minute, strings.Repeat("a", 32), 1),
		block(16, 5*time.Minute, strings.Repeat("b", 32), 2),
		block(32, 10*time.Second, "", 2), // released
	}
	got, err := s.List(t.Context())
	if err != nil || len(got) != len(want) {
		t.Fatalf("list: %+v, %v; want %+v", got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	if !bytes.Equal(meta(t, path, secretKey), secret) {
		t.Error("the secret changed")
	}
	if bytes.Equal(meta(t, path, idKey), id) {
		t.Error("processes of the version before still take the file for theirs")
	}
	if !bytes.Equal(meta(t, path, schemaKey), uint64Bytes(2)) {
		t.Error("the version before can open the file")
	}
	again := meta(t, path, idKey)
	c.Add(20 * time.Second)
	if g := acquire(t, open(t, path, WithClock(c)), request(c.Now())); g.Node != 32 {
		t.Errorf("granted node %d, want 32, the one that was released", g.Node)
	}
	if !bytes.Equal(meta(t, path, idKey), again) {
		t.Error("opening the file again changed its id")
	}
	acquire(t, s, request(c.Now())) // and those that had it open go on
}

// The file's own block size is used where none is named.
func TestTheFilesOwnBlockSize(t *testing.T) {
	path := file(t)
	open(t, path, WithBlockSize(64))
	now := time.Now()
	for _, opts := range [][]Option{nil, {WithBlockSize(64)}} {
		if g := acquire(t, open(t, path, opts...), request(now)); g.Nodes != 64 {
			t.Errorf("granted %d nodes, want 64", g.Nodes)
		}
	}
	if _, err := Open(path, WithBlockSize(8)); !errors.Is(err, lease.ErrBlockSize) {
		t.Errorf("another block size: %v", err)
	}
	if _, err := Open(path, WithNodes(8, 8)); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("nodes that are no blocks of the file: %v", err)
	}
	s := open(t, path, WithNodes(128, 64))
	if _, err := s.Acquire(t.Context(), request(now)); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("a share that is new to the file: %v", err)
	}
}

// The same first node with another number of nodes is another share: a file
// that was lost may have granted the nodes that are new.
func TestALargerShareWaits(t *testing.T) {
	path, c := file(t), newClock()
	open(t, path, WithClock(c), WithNodes(64, 8), WithMaxTTL(time.Minute))
	c.Add(time.Minute)
	s := open(t, path, WithClock(c), WithNodes(64, 16), WithMaxTTL(time.Minute))
	if g, err := s.Acquire(t.Context(), request(c.Now())); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("granted nodes that are new to the file: %+v, %v", g, err)
	}
	c.Add(time.Minute)
	acquire(t, s, request(c.Now()))
}

// A fleet's secret needs nodes that are this host's alone.
func TestCheckUse(t *testing.T) {
	share := driver.NodeRange{First: 64, Nodes: 8}
	for _, tt := range []struct {
		name, url string
		nodes     driver.NodeRange
		fleet     bool
		ttl       time.Duration
		want      error
	}{
		{"its own secret", "bolt:leases.db", driver.NodeRange{}, false, 0, nil},
		{"a fleet's secret and every node", "bolt:leases.db", driver.NodeRange{}, true, 0, lease.ErrInvalidRequest},
		{"a fleet's secret and blocks of a size", "bolt:leases.db", driver.NodeRange{BlockSize: 8}, true, 0, lease.ErrInvalidRequest},
		{"a fleet's secret and a share", "bolt:leases.db", share, true, lease.DefaultTTL, nil},
		{"longer than it grants", "bolt:leases.db", driver.NodeRange{}, false, lease.DefaultTTL + time.Second, lease.ErrInvalidRequest},
		{"another store", "postgres://host/", driver.NodeRange{}, true, time.Hour, nil},
	} {
		err := CheckUse(tt.url, tt.nodes, tt.fleet, tt.ttl)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// A machine that was restored from a snapshot may not be the only one with this
// file, and all of them would grant the same nodes.
func TestRestoredMachine(t *testing.T) {
	path, life := file(t), uint64(1)
	machine := optionFunc(func(c *config) { c.machine = func() uint64 { return life } })
	s := open(t, path, machine)
	g := acquire(t, s, request(time.Now()))
	life++
	_, acquired := s.Acquire(t.Context(), request(time.Now()))
	_, renewed := s.Renew(t.Context(), g, renewal(lease.NewNonce(), g.End))
	_, got := s.Get(t.Context(), g.Node)
	released := s.Release(t.Context(), g, lease.NewNonce(), g.Start)
	for name, err := range map[string]error{"acquire": acquired, "renew": renewed, "get": got, "release": released} {
		if !errors.Is(err, ErrCopied) {
			t.Errorf("%s: %v, want %v", name, err, ErrCopied)
		}
	}
	acquire(t, open(t, path, machine), request(time.Now())) // when an operator has seen to it
}
