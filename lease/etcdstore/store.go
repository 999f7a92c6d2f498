package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// DefaultPrefix begins every key unless [WithPrefix] gives another.
const DefaultPrefix = "/traceflake/leases/"

// Store keeps leases under one prefix in etcd. It is safe for concurrent use.
type Store struct {
	kv     func(context.Context) (clientv3.KV, error)
	prefix string
	// endpoints names the servers in errors.
	endpoints string

	asked driver.NodeRange                 // zero fields are taken from the config
	nodes atomic.Pointer[driver.NodeRange] // nil until the config has been read

	mu   sync.Mutex
	free []record // blocks that were free a while ago
}

var _ interface {
	lease.Store
	lease.Admin
} = (*Store)(nil)

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithBlockSize sets how many nodes a block has, a power of two from 1 to
//  131072. It is fixed by the first grant. The default is the store's block
//     size, and [driver.DefaultBlockSize] for a new one.
func WithBlockSize(nodes int) Option {
	return optionFunc(func(s *Store) { s.asked.BlockSize = driver.Count(nodes, 1) })
}

// WithNodes limits this client to nodes [first, first+n); the default is every
// node. Both are multiples of the block size. Clients of one prefix may differ;
// fleets that share a secret but no store must not overlap.
func WithNodes(first, n int) Option {
	return optionFunc(func(s *Store) { s.asked.First, s.asked.Nodes = driver.Count(first, 0), driver.Count(n, 1) })
}

// WithPrefix sets the prefix of every key. Fleets with different secrets need
// different prefixes, none of which is a prefix of another.
func WithPrefix(prefix string) Option {
	return optionFunc(func(s *Store) { s.prefix = prefix })
}

// New returns a store in the etcd of client, which the caller must close. It
// does not connect. Errors of invalid options wrap [lease.ErrInvalidRequest].
func New(client clientv3.KV, opts ...Option) (*Store, error) {
	c, ok := client.(*clientv3.Client)
	if client == nil || ok && c == nil {
		return nil, fmt.Errorf("etcdstore: %w: no client", lease.ErrInvalidRequest)
	}
	endpoints := []string{"etcd"}
	if ok {
		endpoints = c.Endpoints()
	}
	return newStore(func(context.Context) (clientv3.KV, error) { return client, nil }, endpoints, opts...)
}

func newStore(kv func(context.Context) (clientv3.KV, error), endpoints []string, opts ...Option) (*Store, error) {
	s := &Store{kv: kv, prefix: DefaultPrefix, endpoints: strings.Join(endpoints, ", ")}
	for _, opt := range opts {
		opt.apply(s)
	}
	if s.prefix == "" {
		return nil, fmt.Errorf("etcdstore: %w: the prefix is empty", lease.ErrInvalidRequest)
	}
	if !strings.HasSuffix(s.prefix, "/") {
		s.prefix += "/" // or it might be a prefix of another
	}
	if err := s.asked.CheckAsked(); err != nil {
		return nil, fmt.Errorf("etcdstore: %w", err)
	}
	return s, nil
}

// Renew implements [lease.Store].
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("etcdstore: renew node %d: %w", g.Node, err)
	}
	b, err := s.change(ctx, g, func(b driver.Block) (driver.Block, error) { return b.Renew(g, r) })
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("renew node %d", g.Node), err)
	}
	return b.Grant(), nil
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	if _, err := s.change(ctx, g, func(b driver.Block) (driver.Block, error) { return b.Release(g, nonce, unused) }); err != nil {
		return s.failed(ctx, fmt.Sprintf("release node %d", g.Node), err)
	}
	return nil
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	r, err := s.get(ctx, node)
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("get node %d", node), err)
	}
	return r.block.Grant(), nil
}

// get returns what is stored for the block that starts at node.
func (s *Store) get(ctx context.Context, node uint32) (record, error) {
	nodes, err := s.setup(ctx)
	if err != nil {
		return record{}, err
	}
	i, err := nodes.Index(node)
	if err != nil {
		return record{}, err
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return record{}, err
	}
	answer, err := kv.Txn(ctx).Then(clientv3.OpGet(s.configKey()), clientv3.OpGet(s.blockKey(node))).Commit()
	if err != nil {
		return record{}, err
	}
	if err := s.check(ctx, answer.Responses[0]); err != nil {
		return record{}, err
	}
	return one(nodes.Block(i), answer.Responses[1].GetResponseRange().Kvs)
}

// change applies a rule to the block of g, in one round trip if g is current,
// and otherwise in a second one to what is stored.
func (s *Store) change(ctx context.Context, g lease.Grant, rule func(driver.Block) (driver.Block, error)) (driver.Block, error) {
	nodes, err := s.setup(ctx)
	if err != nil {
		return driver.Block{}, err
	}
	i, err := nodes.Index(g.Node)
	if err != nil {
		return driver.Block{}, err
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return driver.Block{}, err
	}
	never := nodes.Block(i)
	before := never
	before.Start, before.GrantedUntil, before.Nonce, before.Owner, before.Version = g.Start, g.End, g.Nonce, g.Owner, g.Version
	after, err := rule(before)
	if err != nil {
		return driver.Block{}, err // an invalid request, whatever is stored
	}
	same := []clientv3.Cmp{
		clientv3.Compare(clientv3.Version(s.blockKey(g.Node)), "=", int64(g.Version)),
		clientv3.Compare(clientv3.Value(s.blockKey(g.Node)), "=", encode(before)),
	}
	for {
		answer, err := kv.Txn(ctx).
			If(append(same, s.hasConfig(nodes))...).
			Then(s.write(before, after)...).
			Else(clientv3.OpGet(s.configKey()), clientv3.OpGet(s.blockKey(g.Node))).
			Commit()
		if err != nil {
			return driver.Block{}, err
		}
		if answer.Succeeded {
			return after, nil
		}
		if nodes, err = s.read(ctx, answer.Responses[0].GetResponseRange().Kvs); err != nil {
			return driver.Block{}, err
		}
		stored, err := one(never, answer.Responses[1].GetResponseRange().Kvs)
		if err != nil {
			return driver.Block{}, err
		}
		if after, err = rule(stored.block); err != nil {
			return driver.Block{}, err
		}
		before, same = stored.block, s.unchanged(stored)
	}
}

// check checks the config in a response, if there is one.
func (s *Store) check(ctx context.Context, config *etcdserverpb.ResponseOp) error {
	_, err := s.read(ctx, config.GetResponseRange().Kvs)
	if errors.Is(err, errNoConfig) {
		return nil // nothing was granted yet
	}
	return err
}

// unchanged is true if the block has not been written since. A revision alone
// may recur after a restore.
func (s *Store) unchanged(r record) []clientv3.Cmp {
	key := s.blockKey(r.block.Node)
	same := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.revision)}
	if r.revision > 0 { // a missing key has no value to compare
		same = append(same, clientv3.Compare(clientv3.Value(key), "=", r.text))
	}
	return same
}

// write puts a block, and updates the keys of holders accordingly.
func (s *Store) write(before, after driver.Block) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpPut(s.blockKey(after.Node), encode(after))}
	if before.Nonce != after.Nonce {
		if before.Nonce != "" {
			ops = append(ops, clientv3.OpDelete(s.holderKey(before.Nonce)))
		}
		if after.Nonce != "" {
			ops = append(ops, clientv3.OpPut(s.holderKey(after.Nonce), nodeText(after.Node)))
		}
	}
	return ops
}
