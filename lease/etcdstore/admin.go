package etcdstore

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// List implements [lease.Admin]. It writes nothing: keys of an older version of
// this library are refused.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	err := s.refuseOld(ctx)
	var records []record
	if err == nil {
		records, err = s.list(ctx)
	}
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	var blocks []lease.Block
	for _, r := range records {
		if r.revision > 0 {
			blocks = append(blocks, lease.Block(r.block))
		}
	}
	return blocks, nil
}

// refuseOld returns an error if the keys are not migrated yet: a read-only call
// must not migrate them.
func (s *Store) refuseOld(ctx context.Context) error {
	if s.nodes.Load() != nil {
		return nil
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return err
	}
	got, err := kv.Get(ctx, s.configKey())
	if err != nil || len(got.Kvs) == 0 {
		return err
	}
	c, err := parseConfig(got.Kvs[0])
	if err == nil && (c.Schema < schemaVersion || c.Migrating) {
		err = fmt.Errorf("%w: schema %d has not been migrated to %d yet; the first other call by this version does that",
			lease.ErrSchemaVersion, c.Schema, schemaVersion)
	}
	return err
}

// list returns every block, including those never written.
func (s *Store) list(ctx context.Context) ([]record, error) {
	nodes, err := s.setup(ctx)
	if err != nil {
		return nil, err
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := kv.Txn(ctx).Then(clientv3.OpGet(s.configKey()), s.getBlocks(nodes, 0, nodes.Blocks())).Commit()
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx, answer.Responses[0]); err != nil {
		return nil, err
	}
	return records(nodes, 0, nodes.Blocks(), answer.Responses[1].GetResponseRange().Kvs)
}

// raiseAtOnce is how many blocks one transaction raises: each may take two
// comparisons and two operations, the config takes a comparison, and by default
// etcd allows 128 of each.
const raiseAtOnce = 63

// Raise implements [lease.Admin]. It takes one transaction for every 63 blocks.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := driver.CheckRaise(until); err != nil {
		return fmt.Errorf("etcdstore: %w", err)
	}
	if err := s.raise(ctx, until); err != nil {
		return s.failed(ctx, "raise", err)
	}
	return nil
}

func (s *Store) raise(ctx context.Context, until time.Time) error {
	nodes, err := s.setup(ctx)
	if err == nil {
		err = s.configure(ctx, nodes)
	}
	if err != nil {
		return err
	}
	all, err := s.list(ctx)
	if err != nil {
		return err
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return err
	}
	for from := 0; from < len(all); {
		to := min(from+raiseAtOnce, len(all))
		var unchanged []clientv3.Cmp
		var writes []clientv3.Op
		for _, r := range all[from:to] {
			unchanged = append(unchanged, s.unchanged(r)...)
			writes = append(writes, s.write(r.block, r.block.Raise(until))...)
		}
		answer, err := kv.Txn(ctx).If(append(unchanged, s.hasConfig(nodes))...).Then(writes...).Else(s.getBlocks(nodes, from, to), clientv3.OpGet(s.configKey())).Commit()
		if err != nil {
			return err
		}
		if answer.Succeeded {
			from = to
			continue
		}
		if _, err := s.read(ctx, answer.Responses[1].GetResponseRange().Kvs); err != nil {
			return err
		}
		again, err := records(nodes, from, to, answer.Responses[0].GetResponseRange().Kvs)
		if err != nil {
			return err
		}
		copy(all[from:to], again)
	}
	return nil
}

// Time implements [lease.Admin]: etcd does not expose its clock.
func (s *Store) Time(context.Context) (time.Time, error) { return time.Time{}, nil }
