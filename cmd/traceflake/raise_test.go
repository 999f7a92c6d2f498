package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/setup"
)

// Commands that read write nothing, whatever the environment says: the file has the same bytes, and
// a process that holds a lease renews it.
func TestReadingWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	store := "bolt:" + path
	s, err := driver.Open(t.Context(), store, driver.NodeRange{Nodes: 8}, driver.WithSecret(driver.OwnSecret))
	if err != nil {
		t.Fatal(err)
	}
	r := lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 5 * time.Minute, Owner: "checkout-7"}
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	file := func() string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before := file()
	t.Setenv(setup.StoreVar, store)
	for _, nodes := range []string{"", "0+64", "64+64"} {
		for _, size := range []string{"", "4", "16"} {
			t.Setenv(setup.NodesVar, nodes)
			t.Setenv(setup.BlockSizeVar, size)
			command(t, "", "lease", "list").want(t, 0, "held by checkout-7", "")
			command(t, "", "lease", "show", fmt.Sprint(g.Node)).want(t, 0, "held by checkout-7", "")
			command(t, "", "lease", "raise", "now+11m", "--dry-run").want(t, 0, "nothing is written", "")
			command(t, "", "inspect", "1950fb0f8880000086cdcca4ab608495").want(t, 0, something, "")
			command(t, "", "verify", "1950fb0f8880000086cdcca4ab608495").want(t, 1, something, "")
			if file() != before {
				t.Fatalf("%s=%s %s=%s: a command that reads wrote to the store", setup.NodesVar, nodes, setup.BlockSizeVar, size)
			}
		}
	}
	if _, err := s.Renew(t.Context(), g, lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 6 * time.Minute}); err != nil {
		t.Errorf("the holder cannot renew: %v", err)
	}
}

// named are stores in memory that the tests open by URL, as test:NAME.
var named = map[string]*driver.Memory{}

type shared struct{ *driver.Memory }

func (shared) Close() error { return nil }

func init() {
	driver.Register("test", func(_ context.Context, url string, _ driver.Options) (driver.Store, error) {
		return shared{named[strings.TrimPrefix(url, "test:")]}, nil
	})
}

type shifted time.Duration

func (s shifted) Now() time.Time { return time.Now().Add(time.Duration(s)) }

// The operator's clock is wrong by hours: a raise takes the store's, and says so.
func TestRaiseTakesTheStoresTime(t *testing.T) {
	defer func() { now = time.Now }()
	for _, wrong := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		now = func() time.Time { return time.Now().Add(wrong) }
		named["clock"] = driver.NewMemory(driver.WithClock(shifted(0)))
		named["none"] = driver.NewMemory()
		least := time.Now().Add(12 * time.Minute).Truncate(time.Second)
		command(t, "", "lease", "raise", "now+12m", "--store", "test:clock").want(t, 0, "by the store's clock", "")
		for _, b := range list(t, "clock") {
			if b.GrantedUntil.Before(least) || b.GrantedUntil.After(least.Add(time.Minute)) {
				t.Fatalf("a clock that is wrong by %s: raised to %s, want %s", wrong, b.GrantedUntil, least)
			}
		}
		command(t, "", "lease", "raise", "now+12m", "--store", "test:none").want(t, 0, "by this machine's clock, since the store has none; check it", "")
		if b := list(t, "none")[0]; b.GrantedUntil.Before(least.Add(wrong)) {
			t.Errorf("raised to %s", b.GrantedUntil)
		}
		command(t, "", "lease", "raise", time.Now().Add(-time.Minute).Format(time.RFC3339), "--store", "test:clock").want(t, 2, "", "ago; give a time in the future")
	}
}

func list(t *testing.T, name string) []lease.Block {
	t.Helper()
	blocks, err := named[name].List(t.Context())
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	return blocks
}

// A process holds a block of the old store while it is moved to one with another block size.
func TestMove(t *testing.T) {
	defer func() { now = time.Now }()
	now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
	named["old"] = driver.NewMemory()
	named["new"] = driver.NewMemory(driver.WithNodeRange(driver.NodeRange{Nodes: driver.AllNodes.Nodes, BlockSize: 4}))
	ask := func() lease.Request {
		return lease.Request{Nonce: lease.NewNonce(), Now: time.Now().Add(time.Hour), TTL: 10 * time.Minute}
	}
	g, err := named["old"].Acquire(t.Context(), ask()) // its clock is an hour ahead
	if err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "move", "--store", "test:old").want(t, 2, "", "give --to")
	command(t, "", "lease", "move", "--store", "test:old", "--to", "test:old").want(t, 2, "", "the old store")
	command(t, "", "lease", "move", "--store", "test:old", "--to", "test:new").want(t, 0, "the old store is closed; the new one grants leases from ", "")
	command(t, "", "lease", "list", "--store", "test:old").want(t, 0, "closed: moved to another store", "")
	if _, err := named["old"].Renew(t.Context(), g, ask()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("renewed in the old store: %v", err)
	}
	r := ask()
	r.Now = g.End.Add(time.Hour)
	if _, err := named["old"].Acquire(t.Context(), r); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("granted in the old store: %v", err)
	}
	for _, b := range list(t, "new") {
		if b.GrantedUntil.Before(g.End) {
			t.Fatalf("the new store can grant seconds before %s, from %s on", g.End, b.GrantedUntil)
		}
	}
	command(t, "", "lease", "move", "--store", "test:new", "--to", "test:old").want(t, 2, "", "to a new table, prefix, name or file")
}

// With the URL of another store, which was never used, a command that protects against
// forgotten grants would protect against nothing.
func TestWrongStore(t *testing.T) {
	for _, name := range []string{"empty", "new"} {
		named[name] = driver.NewMemory()
	}
	command(t, "", "lease", "move", "--store", "test:empty", "--to", "test:new").want(t, 2, "", "nothing was ever granted")
	for _, name := range []string{"empty", "new"} {
		if blocks, err := named[name].List(t.Context()); err != nil || len(blocks) > 0 {
			t.Errorf("%s was written: %d blocks, %v", name, len(blocks), err)
		}
	}
	command(t, "", "lease", "raise", "now+12m", "--store", "test:empty").want(t, 0, "none of them was ever granted: is this the store that was restored?", "")
}
