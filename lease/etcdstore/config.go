package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// schemaVersion is raised when an older version of this package could damage
// the keys. Every write compares the config, so changing the config is enough
// to have this version refused.
const schemaVersion = 2

type config struct {
	Schema    int    `json:"schema"`
	BlockSize uint32 `json:"block_size"`
	// Migrating is set while the blocks of an older schema are rewritten.
	Migrating bool `json:"migrating,omitempty"`
}

func (c config) String() string {
	text, _ := json.Marshal(c) // never fails
	return string(text)
}

func configOf(blockSize uint32) string {
	return config{Schema: schemaVersion, BlockSize: blockSize}.String()
}

// hasConfig is true if the store has this schema and block size.
func (s *Store) hasConfig(nodes driver.NodeRange) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.configKey()), "=", configOf(nodes.BlockSize))
}

// guess returns the nodes of the store, or the expected ones if the store has
// not been used yet. A transaction that compares the config verifies them.
func (s *Store) guess(ctx context.Context) (driver.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	if nodes, err := s.asked.FitNew(); err == nil {
		return nodes, nil
	}
	return s.setup(ctx) // there may be blocks of a size that fits
}

// setup returns the nodes of the store. It reads etcd on each call until there
// is a config.
func (s *Store) setup(ctx context.Context) (driver.NodeRange, error) {
	if nodes := s.nodes.Load(); nodes != nil {
		return *nodes, nil
	}
	kv, err := s.kv(ctx)
	if err != nil {
		return driver.NodeRange{}, err
	}
	got, err := kv.Get(ctx, s.configKey())
	if err != nil {
		return driver.NodeRange{}, err
	}
	nodes, err := s.read(ctx, got.Kvs)
	if errors.Is(err, errNoConfig) {
		return s.asked.FitNew() // for this call; the next may find one
	}
	return nodes, err
}

// configure writes the config, unless there is one.
func (s *Store) configure(ctx context.Context, nodes driver.NodeRange) error {
	kv, err := s.kv(ctx)
	if err != nil {
		return err
	}
	answer, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.configKey()), "=", 0)).
		Then(clientv3.OpPut(s.configKey(), configOf(nodes.BlockSize))).
		Else(clientv3.OpGet(s.configKey())).
		Commit()
	if err != nil || answer.Succeeded {
		return err
	}
	_, err = s.read(ctx, answer.Responses[0].GetResponseRange().Kvs)
	return err
}

var errNoConfig = errors.New("its config is missing; was it deleted?")

// read returns the nodes of the store with this config, after migrating it to
// the current schema.
func (s *Store) read(ctx context.Context, kvs []*mvccpb.KeyValue) (driver.NodeRange, error) {
	if len(kvs) == 0 {
		return driver.NodeRange{}, errNoConfig
	}
	c, err := parseConfig(kvs[0])
	if err != nil {
		return driver.NodeRange{}, err
	}
	asked := s.asked
	if known := s.nodes.Load(); known != nil {
		asked = *known
	}
	nodes, err := asked.Fit(c.BlockSize)
	if err == nil && (c.Schema < schemaVersion || c.Migrating) {
		err = s.migrate(ctx, c, string(kvs[0].Value))
	}
	if err != nil {
		return driver.NodeRange{}, err
	}
	s.nodes.Store(&nodes)
	return nodes, nil
}

func parseConfig(kv *mvccpb.KeyValue) (config, error) {
	var c config
	if err := json.Unmarshal(kv.Value, &c); err != nil || c.Schema < 1 {
		return c, fmt.Errorf("%w: key %q is %q, want the form %s",
			lease.ErrSchemaVersion, kv.Key, kv.Value, configOf(driver.DefaultBlockSize))
	}
	if c.Schema > schemaVersion {
		return c, fmt.Errorf("%w: schema %d, this version of the library supports %d; use a newer one",
			lease.ErrSchemaVersion, c.Schema, schemaVersion)
	}
	if want := c.String(); string(kv.Value) != want {
		// Transactions compare its exact text.
		return c, fmt.Errorf("%w: key %q is %s, want it spelt %s", lease.ErrSchemaVersion, kv.Key, kv.Value, want)
	}
	return c, nil
}
