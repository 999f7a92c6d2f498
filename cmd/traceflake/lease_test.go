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
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// Commands that read write nothing, whatever the environment says: the file has the same bytes, and
// a process that holds a lease renews it. They show its lease.
func TestReadingWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	store := "bolt:" + path
	command(t, "", "lease", "list", "--store", store).want(t, 2, "", "no such file")
	if _, err := os.Stat(path); err == nil {
		t.Error("listing leases created a file")
	}
	s, err := driver.Open(t.Context(), store, driver.NodeRange{Nodes: 64}, driver.WithSecret(driver.OwnSecret))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(setup.StoreVar, store)
	command(t, "", "lease", "list").want(t, 0, "", "no block has been granted yet")
	r := lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 5 * time.Minute, Owner: "checkout-7"}
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	secret := write(t, "secret", secretA)
	spanOn := func(node uint32) string {
		id, err := keyring(t, secret).Codec().Encode(randflake.Parts{Time: time.Now(), Node: node})
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	content := func() string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before, held := content(), "held by checkout-7 ("+r.Nonce+") until "+g.End.UTC().Format(time.RFC3339)
	for _, environment := range [][2]string{{"", ""}, {"0+64", ""}, {"0+64", "4"}, {"64+64", "16"}} {
		t.Setenv(setup.NodesVar, environment[0])
		t.Setenv(setup.BlockSizeVar, environment[1])
		command(t, "", "lease", "list").want(t, 0, held, "")
		command(t, "", "lease", "list", "-o", "json").want(t, 0, `"holder":"`+r.Nonce+`","owner":"checkout-7"`, "")
		command(t, "", "lease", "show", fmt.Sprint(g.Node+3)).want(t, 0, held, "")
		command(t, "", "lease", "show", fmt.Sprint(g.Node^8)).want(t, 1, "", fmt.Sprintf("node %d was never granted", g.Node^8))
		command(t, "", "lease", "raise", "now+11m", "--dry-run").want(t, 0, "nothing is written", "")
		command(t, "", "inspect", "--secret-file", secret, spanOn(g.Node+5)).want(t, 0, fmt.Sprintf("lease now block %d+8, held by checkout-7 (", g.Node), "")
		command(t, "", "inspect", "--secret-file", secret, spanOn(g.Node^8)).want(t, 0, "lease now never granted", "")
		command(t, "", "verify", "1950fb0f8880000086cdcca4ab608495").want(t, 1, something, "")
		if content() != before {
			t.Fatalf("%q: a command that reads wrote to the store", environment)
		}
	}
	next := lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 6 * time.Minute}
	if g, err = s.Renew(t.Context(), g, next); err != nil {
		t.Fatalf("the holder cannot renew: %v", err)
	}
	// After its release it has no holder, even in its last remaining second.
	if err := s.Release(t.Context(), g, r.Nonce, g.End.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "show", fmt.Sprint(g.Node)).want(t, 0, "without an owner ("+r.Nonce+"), free from ", "")
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
			if b.End.Before(least) || b.End.After(least.Add(time.Minute)) {
				t.Fatalf("a clock that is wrong by %s: raised to %s, want %s", wrong, b.End, least)
			}
		}
		command(t, "", "lease", "raise", "now+12m", "--store", "test:none").want(t, 0, "by this machine's clock, because the store has none; check it", "")
		if b := list(t, "none")[0]; b.End.Before(least.Add(wrong)) {
			t.Errorf("raised to %s", b.End)
		}
		command(t, "", "lease", "raise", time.Now().Add(-time.Minute).Format(time.RFC3339), "--store", "test:clock").want(t, 2, "", "ago; give a time in the future")
	}
}

func list(t *testing.T, name string) []lease.Grant {
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
		if b.End.Before(g.End) {
			t.Fatalf("the new store can grant seconds before %s, from %s on", g.End, b.End)
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

// A raise to a time that must be a mistake is refused; otherwise it would end a fleet's leases for
// years.
func TestRaise(t *testing.T) {
	store := "bolt:" + filepath.Join(t.TempDir(), "leases.db")
	t.Setenv(setup.StoreVar, store)
	s, err := driver.Open(t.Context(), store, driver.NodeRange{}, driver.WithSecret(driver.OwnSecret))
	if err != nil {
		t.Fatal(err)
	}
	holder := lease.NewNonce()
	g, err := s.Acquire(t.Context(), lease.Request{Nonce: holder, Now: time.Now(), TTL: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	text := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	hour := time.Now().Add(time.Hour).Truncate(time.Second)
	command(t, "", "lease", "raise", "soon").want(t, 2, "", `UNTIL: "soon" is not a time`)
	command(t, "", "lease", "raise", "1999-01-01", "--force").want(t, 2, "", "before the epoch")
	command(t, "", "lease", "raise", "now+24h2m").want(t, 2, "", "no process would get a lease before it; every lease ends within 24h1m0s, so give at most now+24h1m0s, or --force")
	command(t, "", "lease", "raise", "now-1m").want(t, 2, "", "1m0s ago")
	r := command(t, "", "lease", "raise", text(hour), "--dry-run")
	r.want(t, 0, "nothing before "+text(hour)+" would be granted", "")
	r.want(t, 0, "blocks ever granted: 1; already unavailable until later: 0\n", "")
	r.want(t, 0, "current leases that could not be renewed any more: 1\n", "")
	r.want(t, 0, holder, "")

	command(t, "", "lease", "raise", text(hour)).want(t, 0, "nothing before "+text(hour)+" is granted any more; blocks raised: 16384\n", "")
	if _, err := s.Renew(t.Context(), g, lease.Request{Nonce: lease.NewNonce(), Now: time.Now(), TTL: 10 * time.Minute}); !errors.Is(err, lease.ErrLost) {
		t.Errorf("a lease is renewed after the raise: %v", err)
	}
	command(t, "", "new").want(t, 2, "", "no leased node")
	r = command(t, "", "lease", "list")
	r.want(t, 0, "without a holder, free from "+text(hour), "")
	r.want(t, 0, fmt.Sprintf("\n%d-%d  ", g.Node, g.Node+7), "") // by itself, unlike those never granted
	if n := len(lines(r.out)); n > 4 {
		t.Errorf("%d lines, want one for all blocks before that one, and one for all after it", n)
	}
	if n := strings.Count(command(t, "", "lease", "list", "-o", "json").out, text(hour)); n != 16384 {
		t.Errorf("%d blocks raised", n)
	}
	// The store keeps whole seconds. A lower time changes nothing. The stored time is reported.
	command(t, "", "lease", "raise", text(hour.Add(1500*time.Millisecond))).want(t, 0, "nothing before "+text(hour.Add(2*time.Second))+" is granted", "")
	command(t, "", "lease", "raise", text(hour)).want(t, 0, "nothing before "+text(hour.Add(2*time.Second))+" is granted", "")
	command(t, "", "lease", "raise", text(hour), "-n").want(t, 0, "current leases that could not be renewed any more: 0\n", "")
	command(t, "", "lease", "raise", "2030-01-01", "--force").want(t, 0, "nothing before 2030-01-01T00:00:00Z is granted", "")
}

// IDs made under a store's own secret are decoded and verified with the store.
func TestStoreSecret(t *testing.T) {
	store, other := "bolt:"+filepath.Join(t.TempDir(), "a.db"), "bolt:"+filepath.Join(t.TempDir(), "b.db")
	id := strings.TrimSpace(command(t, "", "new", "--store", store).out)
	command(t, "", "new", "--store", other).want(t, 0, something, "")

	command(t, "", "inspect", "--store", store, id).want(t, 0, "halves agree", "")
	command(t, "", "inspect", "--store", other, id).want(t, 0, "halves disagree", "")
	command(t, "", "verify", "--store", store, id).want(t, 0, id+"\tverified\n", "")
	command(t, "", "verify", "--store", other, id).want(t, 1, id+"\tnot verified\thalves: ", "")
	// A secret file takes precedence, and then no store is needed.
	secret := write(t, "secret", secretA)
	command(t, "", "verify", "--store", store, "--secret-file", secret, id).want(t, 1, "not verified", "")
	dead := "postgres://user:hunter2@127.0.0.1:1/db"
	command(t, "", "verify", "--store", dead, "--secret-file", secret, id).want(t, 1, "not verified", "")
	command(t, "", "verify", "--store", dead, id).want(t, 2, "", "this store has no secret of its own: no secret: give --secret-file")
	command(t, "", "verify", "--store", "bolt:/nonexistent/leases.db", id).want(t, 2, "", "file does not exist")
}

func TestDeadStore(t *testing.T) {
	secret, store := write(t, "secret", secretA), "postgres://user:hunter2@127.0.0.1:1/db"
	command(t, "", "lease", "list", "--store", store).want(t, 2, "", "store: pgstore")
	command(t, "", "inspect", "4bf92f3577b34da6a3ce929d0e0e4736", "--store", store).want(t, 1, "random 128 bits", "the store does not answer: pgstore")
	command(t, "", "new", "--store", store, "--secret-file", secret).want(t, 2, "", "no leased node")
	command(t, "", "new", "--store", store).want(t, 2, "", "set TRACEFLAKE_SECRET_FILE")
	command(t, "", "lease", "list", "--store", "redis://user:hunter2@h").want(t, 2, "", "unknown kind of store; its URL must begin with one of: bolt:, etcd://, etcds://, k8s://, postgres://")
	command(t, "", "lease", "list", "--store", "postgres://user:hunter2@h:port:/").want(t, 2, "", "not an address")
	command(t, "", "lease", "list").want(t, 2, "", "no store")
}
