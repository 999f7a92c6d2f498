package etcdstore

import (
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/randflake/lease"
)

// schemaVersion grows when an older version of this package could do harm to
// the keys.
const schemaVersion = 1

type config struct {
	Schema    int    `json:"schema"`
	BlockSize uint32 `json:"block_size"`
}

func encodeConfig(blockSize uint32) string {
	return fmt.Sprintf(`{"schema":%d,"block_size":%d}`, schemaVersion, blockSize)
}

// setup returns the nodes of the store. It asks etcd only where the block size
// is for the config to say.
func (s *Store) setup(ctx context.Context) (lease.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return lease.NodeRange{}, err
	}
	got, err := kv.Get(ctx, s.configKey())
	if err != nil {
		return lease.NodeRange{}, err
	}
	if len(got.Kvs) == 0 {
		return s.asked, nil // for this call; the next may find one
	}
	c, err := s.parseConfig(got.Kvs[0])
	if err != nil {
		return lease.NodeRange{}, err
	}
	nodes := s.asked
	nodes.BlockSize = c.BlockSize
	if err := nodes.Check(); err != nil {
		return lease.NodeRange{}, err
	}
	s.nodes.Store(&nodes)
	return nodes, nil
}

// configure writes the config, unless there is one.
func (s *Store) configure(ctx context.Context, blockSize uint32) error {
	kv, err := s.kv(ctx)
	if err != nil {
		return err
	}
	answer, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.configKey()), "=", 0)).
		Then(clientv3.OpPut(s.configKey(), encodeConfig(blockSize))).
		Else(clientv3.OpGet(s.configKey())).
		Commit()
	if err != nil || answer.Succeeded {
		return err
	}
	_, err = s.checkConfig(answer.Responses[0].GetResponseRange().Kvs, blockSize)
	return err
}

// checkConfig tells whether there is a config, and errs when it is not that of
// blocks of this size.
func (s *Store) checkConfig(kvs []*mvccpb.KeyValue, blockSize uint32) (found bool, err error) {
	if len(kvs) == 0 {
		return false, nil
	}
	c, err := s.parseConfig(kvs[0])
	if err != nil {
		return true, err
	}
	if c.BlockSize != blockSize {
		return true, fmt.Errorf("%w: %d nodes, not %d", lease.ErrBlockSize, c.BlockSize, blockSize)
	}
	if want := encodeConfig(blockSize); string(kvs[0].Value) != want {
		// Transactions compare it as it is.
		return true, fmt.Errorf("%w: key %q is %s, want it spelt %s", lease.ErrSchemaVersion, kvs[0].Key, kvs[0].Value, want)
	}
	return true, nil
}

func (s *Store) parseConfig(kv *mvccpb.KeyValue) (config, error) {
	var c config
	if err := json.Unmarshal(kv.Value, &c); err != nil || c.Schema == 0 {
		return c, fmt.Errorf("%w: key %q is %q, want one as %s", lease.ErrSchemaVersion, kv.Key, kv.Value, encodeConfig(lease.DefaultBlockSize))
	}
	if c.Schema != schemaVersion {
		return c, fmt.Errorf("%w: schema %d, this version of the library knows %d; use a newer one", lease.ErrSchemaVersion, c.Schema, schemaVersion)
	}
	return c, nil
}
