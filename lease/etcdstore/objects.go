package etcdstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] on the keys below a prefix. The version of a page is its value,
// which never recurs; etcd's revisions may, after a restore.
type objects struct {
	prefix string
	// of a URL's client, which the first call creates: the server may be down
	config clientv3.Config

	cause atomic.Pointer[string] // of the last request that did not reach a member

	turn   chan struct{} // has an element while a call uses the fields below
	client clientv3.KV
	close  func() error // nil if the caller of New closes the client, or there is none yet
}

// Read implements [driver.Objects].
func (s *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	got, err := s.get(ctx, s.prefix+name)
	if err != nil {
		return driver.Object{}, err
	}
	o := object(got.Kvs)
	o.Place = fmt.Sprintf("cluster %x", got.Header.GetClusterId())
	return o, nil
}

// List implements [driver.Objects]. It returns the data, too, in one consistent snapshot.
func (s *objects) List(ctx context.Context) (map[string]driver.Object, error) {
	got, err := s.get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	all := make(map[string]driver.Object, len(got.Kvs))
	for i, kv := range got.Kvs {
		all[strings.TrimPrefix(string(kv.Key), s.prefix)] = object(got.Kvs[i:])
	}
	return all, nil
}

func (s *objects) get(ctx context.Context, key string,
	options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	got, err := kv.Get(ctx, key, options...)
	if err != nil {
		return nil, s.failed(err)
	}
	return got, nil
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
	if version == "" {
		unchanged = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	answer, err := kv.Txn(ctx).If(unchanged).
		Then(clientv3.OpPut(key, string(data)), clientv3.OpGet(key)).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return driver.Object{}, s.failed(err)
	}
	var now driver.Object // the Store compares it with what was sent
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
