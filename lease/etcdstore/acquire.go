package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// chunk is how many blocks the first response has.
const chunk = 128

// Acquire implements [lease.Store]. It takes a random block.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("etcdstore: %w", err)
	}
	g, err := s.acquire(ctx, r)
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	return g, nil
}

// acquire tries to take a block that was free when it was last seen. If it is
// not free any more, or if the holder has a block already, the transaction
// returns what is needed for the next try.
func (s *Store) acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	nodes, err := s.guess(ctx)
	if err != nil {
		return lease.Grant{}, err
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return lease.Grant{}, err
	}
	for {
		candidate := s.candidate(nodes, r.Now)
		next, err := candidate.block.Acquire(r)
		if err != nil {
			return lease.Grant{}, err
		}
		from, to := span(rand.IntN(nodes.Blocks()), chunk, nodes.Blocks())
		answer, err := kv.Txn(ctx).If(append(s.unchanged(candidate),
			s.hasConfig(nodes),
			clientv3.Compare(clientv3.CreateRevision(s.holderKey(r.Nonce)), "=", 0),
		)...).Then(
			s.write(candidate.block, next)...,
		).Else(
			clientv3.OpGet(s.configKey()),
			clientv3.OpGet(s.holderKey(r.Nonce)),
			s.getBlocks(nodes, from, to),
		).Commit()
		if err != nil {
			return lease.Grant{}, err
		}
		if answer.Succeeded {
			s.nodes.Store(&nodes)
			return next.Grant(), nil
		}
		config := answer.Responses[0].GetResponseRange().Kvs
		known, err := s.read(ctx, config)
		if errors.Is(err, errNoConfig) {
			if err = s.configure(ctx, nodes); err == nil {
				continue
			}
		}
		if err != nil {
			return lease.Grant{}, err
		}
		if known != nodes || string(config[0].Value) != configOf(nodes.BlockSize) {
			nodes = known
			continue // the blocks in the response have another size or schema
		}
		if held := answer.Responses[1].GetResponseRange().Kvs; len(held) > 0 {
			g, ok, err := s.held(ctx, nodes, r.Nonce, held[0])
			if err != nil || ok {
				return g, err
			}
			continue
		}
		found, err := some(nodes, from, to, answer.Responses[2].GetResponseRange().Kvs, r.Now)
		if err == nil && len(found) == 0 {
			found, err = s.search(ctx, nodes, to, answer.Header.Revision, r.Now)
			if errors.Is(err, rpctypes.ErrCompacted) {
				continue
			}
		}
		if err != nil {
			return lease.Grant{}, err
		}
		s.keep(found)
	}
}

// candidate takes a block from those that were free, or guesses that one was
// never granted.
func (s *Store) candidate(nodes driver.NodeRange, now time.Time) record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.free) > 0 {
		last := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		if last.block.Free(now) {
			return last
		}
	}
	return record{block: nodes.Block(rand.IntN(nodes.Blocks()))}
}

// keep remembers free blocks, in an order that differs from other clients'.
func (s *Store) keep(found []record) {
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = found[:min(len(found), chunk)]
}

// search looks for free blocks from block i on, wrapping around, in growing
// chunks. It reads all of them at one revision: so if it finds none, none was
// free at that moment.
func (s *Store) search(ctx context.Context, nodes driver.NodeRange, i int, revision int64, now time.Time) ([]record, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return nil, err
	}
	n := nodes.Blocks()
	for seen, size := 0, chunk; seen < n; size *= 2 {
		from, to := span(i%n, size, n)
		got, err := kv.Do(ctx, s.getBlocks(nodes, from, to, clientv3.WithRev(revision)))
		if err != nil {
			return nil, err
		}
		found, err := some(nodes, from, to, got.Get().Kvs, now)
		if err != nil || len(found) > 0 {
			return found, err
		}
		seen += to - from
		i = to
	}
	return nil, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, n)
}

// span returns blocks from i on, of n.
func span(i, size, n int) (from, to int) { return i, min(i+size, n) }

// getBlocks reads the keys of blocks from to to.
func (s *Store) getBlocks(nodes driver.NodeRange, from, to int, opts ...clientv3.OpOption) clientv3.Op {
	end := s.blockKey(nodes.Block(to-1).Node) + "\x00"
	return clientv3.OpGet(s.blockKey(nodes.Block(from).Node), append(opts, clientv3.WithRange(end))...)
}

// some returns those of the blocks from to to that are free.
func some(nodes driver.NodeRange, from, to int, kvs []*mvccpb.KeyValue, now time.Time) ([]record, error) {
	all, err := records(nodes, from, to, kvs)
	return slices.DeleteFunc(all, func(r record) bool { return !r.block.Free(now) }), err
}

// held returns the grant of a holder whose key was seen, if it is still there.
func (s *Store) held(ctx context.Context, nodes driver.NodeRange, holder string, key *mvccpb.KeyValue) (g lease.Grant, ok bool, err error) {
	node, err := strconv.ParseUint(string(key.Value), 10, 32)
	if err != nil {
		return lease.Grant{}, false, fmt.Errorf("key %q: %q is not a node", key.Key, key.Value)
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return lease.Grant{}, false, err
	}
	answer, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(string(key.Key)), "=", key.ModRevision)).
		Then(clientv3.OpGet(s.blockKey(uint32(node)))).
		Commit()
	if err != nil || !answer.Succeeded {
		return lease.Grant{}, false, err
	}
	r, err := one(driver.Block{Node: uint32(node), Nodes: nodes.BlockSize}, answer.Responses[0].GetResponseRange().Kvs)
	if err == nil && r.block.Nonce != holder {
		err = fmt.Errorf("key %q names a block that has another holder; was one of them written by hand? Delete it", key.Key)
	}
	return r.block.Grant(), err == nil, err
}
