package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/boltstore"
	"github.com/traceflake/traceflake/randflake/lease/driver"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

const secret = "dffd6021bb2bd5b0af676290809ec3a5"

// A store as another module would register it.
type fakeStore struct {
	*driver.Memory
	closed *int
}

func (s fakeStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if strings.HasSuffix(opened.url, "dead") {
		<-ctx.Done()
		return lease.Grant{}, ctx.Err()
	}
	return s.Memory.Acquire(ctx, r)
}

func (s fakeStore) Close() error {
	*s.closed++
	return nil
}

var opened struct {
	url    string
	nodes  driver.NodeRange
	closed int
	memory *driver.Memory
}

func init() {
	driver.Register("setup-test", func(_ context.Context, url string, nodes driver.NodeRange) (driver.Store, error) {
		if strings.Contains(url, "refuse") {
			return nil, errors.New("the driver refuses")
		}
		r := nodes
		if r.Nodes == 0 {
			r = driver.AllNodes
		}
		opened.url, opened.nodes, opened.closed, opened.memory = url, nodes, 0, driver.NewMemory(driver.WithNodeRange(r))
		return fakeStore{opened.memory, &opened.closed}, nil
	})
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env sets the variables given and clears the others.
func env(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{setup.StoreVar, setup.SecretFileVar, setup.NodesVar, setup.BlockSizeVar, setup.TTLVar, setup.MaxBlocksVar} {
		t.Setenv(name, vars[name])
	}
}

func TestZeroConfiguration(t *testing.T) {
	env(t, nil)
	g, shutdown, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id, span := g.NewIDs(t.Context()); !id.IsValid() || !span.IsValid() || g.Fallbacks() != 0 {
		t.Errorf("%v, %v, %d fallbacks", id, span, g.Fallbacks())
	}
	if err := shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFleet(t *testing.T) {
	path := file(t, secret+"\n")
	k, err := setup.LoadKeyring(path)
	if err != nil {
		t.Fatal(err)
	}
	env(t, map[string]string{
		setup.StoreVar: "setup-test://host", setup.SecretFileVar: path, setup.NodesVar: "256+64", setup.BlockSizeVar: "16",
		setup.TTLVar: "1m", setup.MaxBlocksVar: "2",
	})
	g, shutdown, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (driver.NodeRange{First: 256, Nodes: 64, BlockSize: 16}); opened.url != "setup-test://host" || opened.nodes != want {
		t.Errorf("opened %q with %+v", opened.url, opened.nodes)
	}
	id, _ := g.NewIDs(t.Context()) // the first is a leased one already
	if info := traceid.Inspect(k, id); info.Secret != 0 || info.Parts.Node < 256 || info.Parts.Node >= 320 {
		t.Errorf("secret %d, node %d", info.Secret, info.Parts.Node)
	}
	blocks, err := opened.memory.List(t.Context())
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%v, %v", blocks, err)
	}
	if ttl := blocks[0].GrantedUntil.Sub(blocks[0].Start); ttl != time.Minute {
		t.Errorf("granted for %s", ttl)
	}
	for range 2 { // the second time changes nothing
		if err := shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if opened.closed != 1 {
		t.Errorf("the store was closed %d times", opened.closed)
	}
	if blocks, err := opened.memory.List(t.Context()); err != nil || blocks[0].Owner != "" {
		t.Errorf("the lease was not given back: %+v, %v", blocks, err)
	}
}

// One host, no secret: the file has its own.
func TestBolt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	env(t, map[string]string{setup.StoreVar: "bolt:" + path})
	g, shutdown, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	s, err := driver.Open(t.Context(), "bolt:"+path, driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	k := randflake.NewKeyring(s.(driver.CodecStore).Codec())
	if id, _ := g.NewIDs(t.Context()); !traceid.Inspect(k, id).Agree {
		t.Error("the ID is not of the file's secret")
	}
}

type yesterday struct{}

func (yesterday) Now() time.Time         { return time.Now().Add(-24 * time.Hour) }
func (yesterday) Elapsed() time.Duration { return 0 }

// A host with a share of a fleet's nodes uses the fleet's secret, not the
// file's.
func TestBoltInAFleet(t *testing.T) {
	path, secretFile := filepath.Join(t.TempDir(), "leases.db"), file(t, secret)
	// A file new to its nodes waits before it grants; this one is old.
	own, err := boltstore.Open(path, boltstore.WithNodes(256, 64), boltstore.WithClock(yesterday{}))
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := setup.LoadKeyring(secretFile)
	if err != nil {
		t.Fatal(err)
	}
	env(t, map[string]string{setup.StoreVar: "bolt:" + path, setup.SecretFileVar: secretFile, setup.NodesVar: "256+64"})
	g, shutdown, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	id, _ := g.NewIDs(t.Context())
	if at := traceid.Inspect(keyring, id); !at.Agree || at.Parts.Node < 256 || at.Parts.Node >= 320 {
		t.Errorf("with the fleet's secret the ID says %+v", at)
	}
	if traceid.Inspect(randflake.NewKeyring(own.Codec()), id).Agree {
		t.Error("the ID is of the file's own secret")
	}
}

// A store that does not answer delays the start by a second, and no more.
func TestDeadStore(t *testing.T) {
	env(t, map[string]string{setup.StoreVar: "setup-test:dead", setup.SecretFileVar: file(t, secret)})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	start := time.Now()
	g, shutdown, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < time.Second || d > 5*time.Second {
		t.Errorf("it took %s", d)
	}
	if id, span := g.NewIDs(t.Context()); !id.IsValid() || !span.IsValid() || g.Fallbacks() == 0 {
		t.Errorf("%v, %v, %d fallbacks", id, span, g.Fallbacks())
	}
	if err := shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBadValues(t *testing.T) {
	good := file(t, secret)
	const store = "setup-test://user:hunter2@host"
	dir := t.TempDir()
	bolt := "bolt:" + filepath.Join(dir, "leases.db")
	for _, c := range []struct {
		name string
		vars map[string]string
		want string
	}{
		{"secret without store", map[string]string{setup.SecretFileVar: good}, "TRACEFLAKE_SECRET_FILE is set, but TRACEFLAKE_STORE is not"},
		{"TTL without store", map[string]string{setup.TTLVar: "1m"}, "TRACEFLAKE_TTL is set, but TRACEFLAKE_STORE is not"},
		{"store without secret", map[string]string{setup.StoreVar: store}, "no secret of its own; set TRACEFLAKE_SECRET_FILE"},
		{"missing secret", map[string]string{setup.StoreVar: store, setup.SecretFileVar: filepath.Join(dir, "none")}, "TRACEFLAKE_SECRET_FILE: open"},
		{"folder for a secret", map[string]string{setup.StoreVar: store, setup.SecretFileVar: dir}, "TRACEFLAKE_SECRET_FILE: randflake: keyring: read"},
		{"bad secret", map[string]string{setup.StoreVar: store, setup.SecretFileVar: file(t, secret[:30])}, "line 1 has 30 characters"},
		{"unknown store", map[string]string{setup.StoreVar: "redis://user:hunter2@host", setup.SecretFileVar: good}, "TRACEFLAKE_STORE: lease: unknown kind of store; what its address may begin with: bolt, setup-test"},
		{"driver refuses", map[string]string{setup.StoreVar: "setup-test:refuse", setup.SecretFileVar: good}, "TRACEFLAKE_STORE: the driver refuses"},
		{"TTL no duration", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.TTLVar: "10"}, `TRACEFLAKE_TTL: "10" is no duration`},
		{"TTL short", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.TTLVar: "1s"}, "TRACEFLAKE_TTL: 1s is not from 2s to 24h"},
		{"TTL long", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.TTLVar: "25h"}, "TRACEFLAKE_TTL: 25h0m0s is not"},
		{"TTL too long for bolt", map[string]string{setup.StoreVar: bolt, setup.TTLVar: "11m"}, "a TTL of 11m0s is more than the 10m0s that a file grants"},
		{"no blocks", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.MaxBlocksVar: "0"}, "TRACEFLAKE_MAX_BLOCKS: "},
		{"nodes", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.NodesVar: "0-8"}, `TRACEFLAKE_NODES: "0-8" is not of the form FIRST+COUNT`},
		{"too many nodes", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.NodesVar: "8+131072"}, "TRACEFLAKE_NODES"},
		{"unaligned nodes", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.NodesVar: "4+8", setup.BlockSizeVar: "8"}, "TRACEFLAKE_NODES, TRACEFLAKE_BLOCK_SIZE: lease: invalid request"},
		{"block size", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.BlockSizeVar: "3"}, "TRACEFLAKE_NODES, TRACEFLAKE_BLOCK_SIZE: lease: invalid request: block size 3"},
		{"block size no number", map[string]string{setup.StoreVar: store, setup.SecretFileVar: good, setup.BlockSizeVar: "-8"}, "TRACEFLAKE_BLOCK_SIZE: "},
		{"bolt with a fleet's secret", map[string]string{setup.StoreVar: bolt, setup.SecretFileVar: good}, "with a fleet's secret this host needs nodes of its own"},
		{"bolt without a path", map[string]string{setup.StoreVar: "bolt:"}, "no path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env(t, c.vars)
			g, shutdown, err := setup.FromEnv(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if g != nil || shutdown != nil {
				t.Error("a generator with an error")
			}
			for _, hidden := range []string{"hunter2", secret[:8]} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("it shows %q: %v", hidden, err)
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "leases.db")); err == nil {
		t.Error("a bad configuration made a file")
	}
}

// A store that is closed after a bad configuration is not left open.
func TestClosesTheStoreItRefuses(t *testing.T) {
	env(t, map[string]string{setup.StoreVar: "setup-test:x"})
	if _, _, err := setup.FromEnv(t.Context()); !errors.Is(err, setup.ErrConfig) || opened.closed != 1 {
		t.Errorf("%v, closed %d times", err, opened.closed)
	}
}

// Env takes each value up to its bounds and no further.
func TestEnvBounds(t *testing.T) {
	nodes := func(first, count uint32) setup.Config {
		return setup.Config{Nodes: driver.NodeRange{First: first, Nodes: count}}
	}
	for _, c := range []struct {
		name, value string
		want        setup.Config // zero: refused
	}{
		{setup.NodesVar, "0+131072", nodes(0, 131072)},
		{setup.NodesVar, "131071+1", nodes(131071, 1)},
		{setup.NodesVar, " 8 + 16 ", nodes(8, 16)},
		{setup.NodesVar, "131072+1", setup.Config{}},
		{setup.NodesVar, "131073+1", setup.Config{}},
		{setup.NodesVar, "131071+2", setup.Config{}},
		{setup.NodesVar, "1+131072", setup.Config{}},
		{setup.NodesVar, "0+0", setup.Config{}},
		{setup.NodesVar, "8", setup.Config{}},
		{setup.NodesVar, "a+8", setup.Config{}},
		{setup.NodesVar, "8+a", setup.Config{}},
		{setup.NodesVar, "4294967296+8", setup.Config{}},
		{setup.NodesVar, "8+4294967297", setup.Config{}},
		{setup.BlockSizeVar, "1", setup.Config{Nodes: driver.NodeRange{BlockSize: 1}}},
		{setup.BlockSizeVar, "131072", setup.Config{Nodes: driver.NodeRange{BlockSize: 131072}}},
		{setup.BlockSizeVar, "0", setup.Config{}},
		{setup.BlockSizeVar, "4294967304", setup.Config{}},
		{setup.BlockSizeVar, "8x", setup.Config{}},
		{setup.TTLVar, "2s", setup.Config{TTL: 2 * time.Second}},
		{setup.TTLVar, "24h", setup.Config{TTL: lease.MaxTTL}},
		{setup.TTLVar, "1999ms", setup.Config{}},
		{setup.TTLVar, "24h0m1s", setup.Config{}},
		{setup.MaxBlocksVar, "1", setup.Config{MaxBlocks: 1}},
		{setup.MaxBlocksVar, "7", setup.Config{MaxBlocks: 7}},
		{setup.MaxBlocksVar, "0", setup.Config{}},
		{setup.MaxBlocksVar, "99999999999999999999", setup.Config{}},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			env(t, map[string]string{c.name: c.value})
			got, err := setup.Env()
			if bad := c.want == (setup.Config{}); got != c.want || bad != errors.Is(err, setup.ErrConfig) || !bad && err != nil {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.name) {
				t.Errorf("%v does not name %s", err, c.name)
			}
		})
	}
}

// Without a store every other setting is a mistake, and the error names it.
func TestSettingsWithoutAStore(t *testing.T) {
	for name, c := range map[string]setup.Config{
		setup.SecretFileVar: {SecretFile: "x"},
		setup.NodesVar:      {Nodes: driver.NodeRange{Nodes: 8}},
		setup.BlockSizeVar:  {Nodes: driver.NodeRange{BlockSize: 8}},
		setup.TTLVar:        {TTL: time.Minute},
		setup.MaxBlocksVar:  {MaxBlocks: 1},
	} {
		_, _, err := c.Open(t.Context())
		if !errors.Is(err, setup.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The most blocks that a process may hold, it may hold.
func TestMaxBlocks(t *testing.T) {
	c := setup.Config{Store: "setup-test:x", SecretFile: file(t, secret), MaxBlocks: -1}
	_, _, err := c.Open(t.Context())
	if err == nil || opened.closed != 1 {
		t.Errorf("got %v, closed %d times: MaxBlocks does not reach the Keeper", err, opened.closed)
	}
}

func TestKeyringErrorsNameTheFile(t *testing.T) {
	for _, path := range []string{file(t, secret[:30]), filepath.Join(t.TempDir(), "none")} {
		if _, err := setup.LoadKeyring(path); err == nil || strings.Count(err.Error(), path) != 1 {
			t.Errorf("got %v, want an error that names %s once", err, path)
		}
	}
}
