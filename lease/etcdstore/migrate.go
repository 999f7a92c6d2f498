package etcdstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// valueV1 is the content of a block's key in schema 1.
type valueV1 struct {
	GrantedFrom  *time.Time `json:"granted_from,omitempty"`
	GrantedUntil *time.Time `json:"granted_until,omitempty"`
	Nonce        string     `json:"holder,omitempty"`
}

// migrate brings a store of schema 1 to the current schema, or continues where
// another client stopped. The config is changed first: older processes check it
// before they take or read a block. A block is rewritten as it is at that
// moment, including late renewals by its holder; after that an older holder
// cannot renew it. The store is used again once all blocks are rewritten.
func (s *Store) migrate(ctx context.Context, c config, from string) error {
	c.Schema, c.Migrating = schemaVersion, true
	if err := s.replaceConfig(ctx, from, c); err != nil {
		return err
	}
	end := clientv3.GetPrefixRangeEnd(s.blockPrefix())
	for key := s.blockPrefix(); key != ""; {
		var err error
		if key, err = s.rewrite(ctx, key, end); err != nil {
			return err
		}
	}
	from = c.String()
	c.Migrating = false
	return s.replaceConfig(ctx, from, c)
}

// replaceConfig changes the config, unless another client did the same.
func (s *Store) replaceConfig(ctx context.Context, from string, to config) error {
	client, err := s.kv(ctx)
	if err != nil || from == to.String() {
		return err
	}
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(s.configKey()), "=", from)).
		Then(clientv3.OpPut(s.configKey(), to.String())).
		Else(clientv3.OpGet(s.configKey())).
		Commit()
	if err != nil || answer.Succeeded {
		return err
	}
	kvs := answer.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return errNoConfig
	}
	c, err := parseConfig(kvs[0])
	if err == nil && (c.Schema != to.Schema || c.BlockSize != to.BlockSize) {
		err = fmt.Errorf("key %q changed to %s while its blocks were rewritten; try again", kvs[0].Key, kvs[0].Value)
	}
	return err
}

// rewrite rewrites some blocks from key on, and returns the key at which to
// continue, or "" at the end.
func (s *Store) rewrite(ctx context.Context, key, end string) (next string, err error) {
	client, err := s.kv(ctx)
	if err != nil {
		return "", err
	}
	for {
		got, err := client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(raiseAtOnce))
		if err != nil {
			return "", err
		}
		var unchanged []clientv3.Cmp
		var writes []clientv3.Op
		for _, kv := range got.Kvs {
			text, old, err := rewritten(kv)
			if err != nil {
				return "", err
			}
			if old {
				unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision))
				writes = append(writes, clientv3.OpPut(string(kv.Key), text))
			}
		}
		if len(writes) > 0 {
			answer, err := client.Txn(ctx).If(unchanged...).Then(writes...).Commit()
			if err != nil {
				return "", err
			}
			if !answer.Succeeded {
				continue // a holder renewed
			}
		}
		if !got.More {
			return "", nil
		}
		return string(got.Kvs[len(got.Kvs)-1].Key) + "\x00", nil
	}
}

// rewritten returns a block of schema 1 in the current one.
func rewritten(kv *mvccpb.KeyValue) (text string, old bool, err error) {
	var v valueV1
	if err := json.Unmarshal(kv.Value, &v); err != nil {
		return "", false, fmt.Errorf("key %q does not hold a block: %w", kv.Key, err)
	}
	if v.GrantedUntil == nil {
		return "", false, nil
	}
	after, err := json.Marshal(value{From: v.GrantedFrom, Until: v.GrantedUntil, Nonce: v.Nonce})
	return string(after), true, err
}
