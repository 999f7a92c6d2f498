package etcdstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/credentials"

	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] on the keys below a prefix. The version of a page is its value,
// which never recurs; etcd's revisions may, after a restore.
type objects struct {
	prefix string
	// of a URL's client, which the first call creates: the server may be down
	config clientv3.Config

	credentials credentials.TransportCredentials
	cause       atomic.Pointer[string] // of the last request that did not reach a member
	handshake   atomic.Pointer[error]  // of the last connection since a request reached a member

	turn   chan struct{} // has an element while a call uses the fields below
	client clientv3.KV
	close  func() error // nil if the caller of New closes the client, or there is none yet
}

// placeKey is a key that only the creation of a store writes, twice.
const placeKey = "place"

// Read implements [driver.Objects].
func (s *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return driver.Object{}, s.failed(err)
	}
	got, err := kv.Txn(ctx).
		Then(clientv3.OpGet(s.prefix+name), clientv3.OpGet(s.prefix+placeKey)).Commit()
	if err != nil {
		return driver.Object{}, s.failed(err)
	}
	o := object(got.Responses[0].GetResponseRange().GetKvs())
	o.Place = place(got.Header, got.Responses[1].GetResponseRange().GetKvs())
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
	kv, err := s.kv(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	got, err := kv.Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, s.failed(err)
	}
	all := make(map[string]driver.Object, len(got.Kvs))
	for i, kv := range got.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), s.prefix); name != placeKey {
			all[name] = object(got.Kvs[i:])
		}
	}
	return all, nil
}

// Write implements [driver.Objects].
func (s *objects) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return driver.Object{}, s.failed(err)
	}
	key := s.prefix + name
	unchanged := clientv3.Compare(clientv3.Value(key), "=", version)
	writes := []clientv3.Op{clientv3.OpPut(key, string(data)), clientv3.OpGet(key)}
	if version == "" {
		unchanged = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		if name == "config" {
			mark := clientv3.OpPut(s.prefix+placeKey, "Neither write nor delete this key.")
			missing := clientv3.Compare(clientv3.CreateRevision(s.prefix+placeKey), "=", 0)
			if _, err := kv.Txn(ctx).If(missing).Then(mark).Commit(); err != nil {
				return driver.Object{}, s.failed(err)
			}
			writes = append([]clientv3.Op{mark}, writes...)
		}
	}
	answer, err := kv.Txn(ctx).If(unchanged).Then(writes...).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return driver.Object{}, s.failed(err)
	}
	var now driver.Object // the store compares it with what was sent
	for _, r := range answer.Responses {
		now = object(r.GetResponseRange().GetKvs()) // the last one is of the OpGet
	}
	if !answer.Succeeded {
		return now, driver.ErrChanged
	}
	return now, nil
}

// object returns the object of the first key, or the zero Object if kvs is empty.
func object(kvs []*mvccpb.KeyValue) driver.Object {
	if len(kvs) == 0 {
		return driver.Object{}
	}
	return driver.Object{Data: kvs[0].Value, Version: string(kvs[0].Value)}
}
