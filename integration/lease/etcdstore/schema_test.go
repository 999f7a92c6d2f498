package etcdstore_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/etcdstore"
)

var (
	//go:embed testdata/schema1.json
	schema1 []byte // keys that the version with schema 1 wrote
	start1  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

const size1 = 1 << 15

// restore writes the keys of schema 1 as often as they were written.
func restore(t *testing.T, kv clientv3.KV, prefix string) {
	t.Helper()
	var keys []struct {
		Key, Value string
		Version    int
	}
	if err := json.Unmarshal(schema1, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		for range k.Version {
			if _, err := kv.Put(context.Background(), prefix+k.Key, k.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func at(t *testing.T, kv clientv3.KV, key string) string {
	t.Helper()
	got, err := kv.Get(context.Background(), key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("key %q: %v, %v", key, got, err)
	}
	return string(got.Kvs[0].Value)
}

// old is what the version with schema 1 sends for a grant.
type old struct {
	kv     clientv3.KV
	prefix string
}

func (o old) acquire(holder string) (took bool, err error) {
	key := o.prefix + "block/000000"
	answer, err := o.kv.Txn(context.Background()).If(
		clientv3.Compare(clientv3.ModRevision(key), "=", 0),
		clientv3.Compare(clientv3.Value(o.prefix+"config"), "=", `{"schema":1,"block_size":32768}`),
		clientv3.Compare(clientv3.CreateRevision(o.prefix+"holder/"+holder), "=", 0),
	).Then(
		clientv3.OpPut(key, `{"granted_from":"2026-01-02T03:04:05Z","granted_until":"2026-01-02T03:05:05Z","holder":"`+holder+`"}`),
		clientv3.OpPut(o.prefix+"holder/"+holder, "000000"),
	).Commit()
	return err == nil && answer.Succeeded, err
}

// renew renews the grant of 32 times a, as the fixture has it.
func (o old) renew() (wrote bool, err error) {
	key, holder := o.prefix+"block/098304", strings.Repeat("a", 32)
	answer, err := o.kv.Txn(context.Background()).If(
		clientv3.Compare(clientv3.Version(key), "=", 1),
		clientv3.Compare(clientv3.Value(key), "=", `{"granted_from":"2026-01-02T03:04:05Z","granted_until":"2026-01-02T03:05:05Z","holder":"`+holder+`"}`),
	).Then(
		clientv3.OpPut(key, `{"granted_from":"2026-01-02T03:04:05Z","granted_until":"2026-01-02T03:06:05Z","holder":"`+holder+`"}`),
	).Else(clientv3.OpGet(key)).Commit()
	if err != nil || answer.Succeeded {
		return err == nil, err
	}
	// It looks again, and errs unless it finds granted_until.
	return strings.Contains(string(answer.Responses[0].GetResponseRange().Kvs[0].Value), "granted_until"), nil
}

func wantBlocks(t *testing.T, s lease.Admin, renewed time.Duration, migrations uint64) {
	t.Helper()
	block := func(node uint32, until time.Duration, holder string, version uint64) lease.Block {
		return lease.Block{
			Node: node, Nodes: size1, Start: start1, GrantedUntil: start1.Add(until),
			Nonce: holder, Version: version + migrations,
		}
	}
	want := []lease.Block{
		block(1*size1, 5*time.Minute, strings.Repeat("b", 32), 2),
		block(2*size1, 10*time.Second, "", 2), // released
		block(3*size1, time.Minute+renewed, strings.Repeat("a", 32), 1),
	}
	if renewed > 0 {
		want[2].Version++
	}
	got, err := s.List(context.Background())
	if err != nil || len(got) != len(want) {
		t.Fatalf("list: %+v, %v; want %+v", got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

// Keys of schema 1 are migrated without losing a grant, and what the older
// version sends is refused from then on.
func TestKeysOfTheVersionBefore(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	ctx, client := context.Background(), cluster.ClientForTest(t)
	restore(t, client, "/old/")
	config := func() string { return at(t, client, "/old/config") }

	other, err := etcdstore.New(client, etcdstore.WithPrefix("/old/"), etcdstore.WithBlockSize(8))
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Acquire(ctx, request(start1))
	wantError(t, "another block size", err, lease.ErrBlockSize)
	if got := config(); got != `{"schema":1,"block_size":32768}` {
		t.Errorf("a store with another block size left the config %s", got)
	}
	before := old{client, "/old/"}
	if wrote, err := before.renew(); !wrote || err != nil {
		t.Fatalf("the version before cannot use its own store: %v", err)
	}

	atOnce := make(chan error)
	for range 4 { // processes start together
		s, err := etcdstore.New(client, etcdstore.WithPrefix("/old/"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := s.Get(ctx, 0); atOnce <- err }()
	}
	for range 4 {
		if err := <-atOnce; err != nil {
			t.Error(err)
		}
	}
	s, err := driver.Open(ctx, "etcd://"+cluster.Endpoints()[0]+"/old/", driver.NodeRange{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	wantBlocks(t, s, time.Minute, 1)
	if got := config(); got != `{"schema":2,"block_size":32768}` {
		t.Errorf("the config is %s", got)
	}

	if took, err := before.acquire(lease.NewNonce()); took || err != nil {
		t.Errorf("the version before took a block: %v", err)
	}
	if wrote, err := before.renew(); wrote || err != nil {
		t.Errorf("the version before renewed: %v", err)
	}
	wantBlocks(t, s, time.Minute, 1)

	now := start1.Add(20 * time.Second)
	for range 2 { // one was released, one was never granted
		if g, err := s.Acquire(ctx, request(now)); err != nil || g.Node != 0 && g.Node != 2*size1 {
			t.Errorf("acquire: %+v, %v", g, err)
		}
	}
	if g, err := s.Acquire(ctx, request(now)); !errors.Is(err, lease.ErrNoFreeNode) {
		t.Errorf("granted over a grant of the version before: %+v, %v", g, err)
	}
}

// dying makes so many transactions and no more.
type dying struct {
	clientv3.KV
	left int
}

var errDied = errors.New("the client died")

func (d *dying) Txn(ctx context.Context) clientv3.Txn {
	if d.left--; d.left < 0 {
		return noTxn{}
	}
	return d.KV.Txn(ctx)
}

type noTxn struct{}

func (t noTxn) If(...clientv3.Cmp) clientv3.Txn      { return t }
func (t noTxn) Then(...clientv3.Op) clientv3.Txn     { return t }
func (t noTxn) Else(...clientv3.Op) clientv3.Txn     { return t }
func (noTxn) Commit() (*clientv3.TxnResponse, error) { return nil, errDied }

// Wherever the migrating client dies, the store is not used in between, and the
// next client continues.
func TestMigrationDies(t *testing.T) {
	client := etcd.ForTest(t, 1).ClientForTest(t)
	ctx := context.Background()
	for after := range 4 { // the config, the blocks, the config again, the call itself
		prefix := fmt.Sprintf("/dies/%d/", after)
		restore(t, client, prefix)
		s, err := etcdstore.New(&dying{client, after}, etcdstore.WithPrefix(prefix))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, 0); !errors.Is(err, errDied) {
			t.Errorf("after %d transactions: %v", after, err)
		}
		want := []string{
			`{"schema":1,"block_size":32768}`,
			`{"schema":2,"block_size":32768,"migrating":true}`,
			`{"schema":2,"block_size":32768,"migrating":true}`,
			`{"schema":2,"block_size":32768}`,
		}[after]
		if got := at(t, client, prefix+"config"); got != want {
			t.Errorf("after %d transactions the config is %s, want %s", after, got, want)
		}
		if s, err = etcdstore.New(client, etcdstore.WithPrefix(prefix)); err != nil {
			t.Fatal(err)
		}
		if after < 3 { // a read-only call does not continue it
			_, err = s.List(ctx)
			wantError(t, "list", err, lease.ErrSchemaVersion)
		}
		if _, err := s.Get(ctx, 0); err != nil {
			t.Fatal(err)
		}
		wantBlocks(t, s, 0, 1)
	}
}

// A newer version took over: nothing is written any more, whatever a client of
// this one remembers.
func TestANewerVersionTakesOver(t *testing.T) {
	client := etcd.ForTest(t, 1).ClientForTest(t)
	ctx, now := context.Background(), time.Now()
	s, err := open(client, "/newer/", driver.NodeRange{First: 0, Nodes: 1 << 17, BlockSize: size1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Acquire(ctx, request(now))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, "/newer/config", `{"schema":3,"block_size":32768}`); err != nil {
		t.Fatal(err)
	}
	before := at(t, client, "/newer/block/"+fmt.Sprintf("%06d", g.Node))
	_, err = s.Renew(ctx, g, renewal(lease.NewNonce(), g.End.Add(time.Minute)))
	wantError(t, "renew", err, lease.ErrSchemaVersion, "newer")
	wantError(t, "release", s.Release(ctx, g, lease.NewNonce(), now), lease.ErrSchemaVersion)
	wantError(t, "raise", s.Raise(ctx, now.Add(time.Hour)), lease.ErrSchemaVersion)
	_, err = s.Acquire(ctx, request(now))
	wantError(t, "acquire", err, lease.ErrSchemaVersion)
	_, err = s.Get(ctx, g.Node)
	wantError(t, "get", err, lease.ErrSchemaVersion)
	if after := at(t, client, "/newer/block/"+fmt.Sprintf("%06d", g.Node)); after != before {
		t.Errorf("the block was %s and is %s", before, after)
	}
}

// A migration that another client left half-way is ended, and what a holder of
// the version before added meanwhile is kept.
func TestMigrationLeftHalfWay(t *testing.T) {
	client := etcd.ForTest(t, 1).ClientForTest(t)
	ctx := context.Background()
	restore(t, client, "/half/")
	for key, value := range map[string]string{
		"config":       `{"schema":2,"block_size":32768,"migrating":true}`,
		"block/032768": `{"from":"2026-01-02T03:04:05Z","until":"2026-01-02T03:09:05Z","nonce":"` + strings.Repeat("b", 32) + `"}`,
		"block/065536": `{"from":"2026-01-02T03:04:05Z","until":"2026-01-02T03:04:15Z"}`,
	} {
		if _, err := client.Put(ctx, "/half/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	before := old{client, "/half/"}
	if took, err := before.acquire(lease.NewNonce()); took || err != nil {
		t.Errorf("the version before took a block: %v", err)
	}
	if wrote, err := before.renew(); !wrote || err != nil {
		t.Errorf("a block that was not rewritten yet: %v", err)
	}
	s, err := etcdstore.New(client, etcdstore.WithPrefix("/half/"), etcdstore.WithBlockSize(size1))
	if err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(ctx, request(start1)); err != nil || g.Node != 0 {
		t.Errorf("acquire: %+v, %v; want node 0, the only free one", g, err)
	}
	if got := at(t, client, "/half/config"); got != `{"schema":2,"block_size":32768}` {
		t.Errorf("the config is %s", got)
	}
	if wrote, err := before.renew(); wrote || err != nil {
		t.Errorf("the version before renewed: %v", err)
	}
	g, err := s.Get(ctx, 0) // of node 0
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(ctx, g, lease.NewNonce(), start1); err != nil {
		t.Fatal(err)
	}
	blocks, err := s.List(ctx)
	if err != nil || len(blocks) != 4 || !blocks[3].GrantedUntil.Equal(start1.Add(2*time.Minute)) {
		t.Errorf("list: %+v, %v; want the renewal in the last", blocks, err)
	}
}

// A store is opened without naming its block size again; with a share of its
// nodes, too.
func TestTheStoresOwnBlockSize(t *testing.T) {
	client := etcd.ForTest(t, 1).ClientForTest(t)
	ctx, now := context.Background(), time.Now()
	first, err := etcdstore.New(client, etcdstore.WithBlockSize(4))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Acquire(ctx, request(now)); err != nil {
		t.Fatal(err)
	}
	for _, share := range []int{64, 4} { // a multiple of the default size, and another size
		s, err := etcdstore.New(client, etcdstore.WithNodes(share, share))
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Acquire(ctx, request(now))
		if err != nil || g.Nodes != 4 || int(g.Node) < share || int(g.Node) >= 2*share {
			t.Errorf("nodes %d+%d: got %+v, %v", share, share, g, err)
		}
	}
	small, err := etcdstore.New(client, etcdstore.WithNodes(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = small.Acquire(ctx, request(now))
	wantError(t, "nodes that are no blocks of the store", err, lease.ErrInvalidRequest, "multiples")
}
