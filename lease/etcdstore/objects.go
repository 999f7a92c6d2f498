package etcdstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] on the keys below a prefix. The version of a page is its value,
// which never recurs; etcd's revisions may, after a restore.
type objects struct {
	prefix string
	given  clientv3.KV // nil if the store has its own client

	config    clientv3.Config        // of the own client
	own       chan *clientv3.Client  // has it as its element, except while a call uses it
	cause     atomic.Pointer[string] // of the last request that did not reach a member
	handshake atomic.Pointer[error]  // of the last connection since a request reached a member
}

// placeKey is a key that only the creation of a store writes, twice.
const placeKey = "place"

// commit runs a transaction, which changes nothing if a condition is not met.
func (s *objects) commit(ctx context.Context, writes []clientv3.Op,
	conditions ...clientv3.Cmp) (*clientv3.TxnResponse, error) {
	kv, err := s.kv(ctx)
	var answer *clientv3.TxnResponse
	if err == nil {
		answer, err = kv.Txn(ctx).If(conditions...).Then(writes...).Commit()
	}
	return answer, s.failed(err)
}

// values returns what the get of a transaction found.
func values(r *etcdserverpb.ResponseOp) []*mvccpb.KeyValue { return r.GetResponseRange().GetKvs() }

// Read implements [driver.Objects].
func (s *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	got, err := s.commit(ctx,
		[]clientv3.Op{clientv3.OpGet(s.prefix + name), clientv3.OpGet(s.prefix + placeKey)})
	if err != nil {
		return driver.Object{}, err
	}
	o := object(values(got.Responses[0]))
	o.Place = place(got.Header, values(got.Responses[1]))
	return o, nil
}

// place returns a text that differs from that of copies. The ID of a cluster is computed of its
// members' names and token, so several may have one ID. In a copy of the keys, the place key is
// written once, or at another revision. A restored snapshot has the same place.
func place(header *etcdserverpb.ResponseHeader, kvs []*mvccpb.KeyValue) string {
	cluster := fmt.Sprintf("cluster %x", header.GetClusterId())
	if len(kvs) == 0 {
		return cluster + " without the key " + placeKey
	}
	return fmt.Sprintf("%s, revision %d, version %d", cluster, kvs[0].CreateRevision,
		kvs[0].Version)
}

// List implements [driver.Objects]. It returns the data, too, in one consistent snapshot.
func (s *objects) List(ctx context.Context) (map[string]driver.Object, error) {
	got, err := s.commit(ctx, []clientv3.Op{clientv3.OpGet(s.prefix, clientv3.WithPrefix())})
	if err != nil {
		return nil, err
	}
	kvs := values(got.Responses[0])
	all := make(map[string]driver.Object, len(kvs))
	for i, kv := range kvs {
		if name := strings.TrimPrefix(string(kv.Key), s.prefix); name != placeKey {
			all[name] = object(kvs[i:])
		}
	}
	return all, nil
}

// Write implements [driver.Objects]. The store compares what it returns with what was sent.
func (s *objects) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	key := s.prefix + name
	unchanged := clientv3.Compare(clientv3.Value(key), "=", version)
	writes := []clientv3.Op{clientv3.OpPut(key, string(data)), clientv3.OpGet(key)}
	if version == "" {
		unchanged = missing(key)
		if name == "config" {
			place := s.prefix + placeKey
			mark := []clientv3.Op{clientv3.OpPut(place, "Neither write nor delete this key.")}
			if _, err := s.commit(ctx, mark, missing(place)); err != nil {
				return driver.Object{}, err
			}
			writes = append(mark, writes...)
		}
	}
	answer, err := s.commit(ctx, writes, unchanged)
	if err != nil {
		return driver.Object{}, err
	}
	if !answer.Succeeded {
		return driver.Object{}, driver.ErrChanged
	}
	return object(values(answer.Responses[len(writes)-1])), nil
}

// missing is the condition that there is no such key.
func missing(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
}

// CheckRights writes nothing; see [driver.Objects]. etcd checks the user's rights and its quota for
// a whole transaction, even for a branch that is not executed. This one never is, since no key has
// a negative revision.
func (s *objects) CheckRights(ctx context.Context) error {
	key := s.prefix + "config"
	_, err := s.commit(ctx, []clientv3.Op{clientv3.OpPut(key, "")},
		clientv3.Compare(clientv3.CreateRevision(key), "=", -1))
	return err
}

// object returns the object of the first key, or the zero Object if kvs is empty.
func object(kvs []*mvccpb.KeyValue) driver.Object {
	if len(kvs) == 0 {
		return driver.Object{}
	}
	return driver.Object{Data: kvs[0].Value, Version: string(kvs[0].Value)}
}
