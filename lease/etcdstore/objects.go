package etcdstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// objects is a [driver.Objects] on the keys below a prefix. The version of a page is its value,
// which never recurs; etcd's revisions may, after a restore.
type objects struct {
	prefix string
	kv     clientv3.KV

	own        *clientv3.Client       // the same, unless it is the caller's
	scheme     string                 // of the URL
	connecting bool                   // no request is sent yet
	cause      atomic.Pointer[string] // of the last request that did not reach a member
}

// placeKey is a key that only Prepare writes, twice.
const placeKey = "place"

// commit runs a transaction, which changes nothing if a condition is not met.
func (s *objects) commit(ctx context.Context, writes []clientv3.Op,
	conditions ...clientv3.Cmp) (*clientv3.TxnResponse, error) {
	answer, err := s.kv.Txn(ctx).If(conditions...).Then(writes...).Commit()
	return answer, s.failed(err)
}

// values returns what the get of a transaction found.
func values(r *etcdserverpb.ResponseOp) []*mvccpb.KeyValue { return r.GetResponseRange().GetKvs() }

// Prepare implements [driver.Objects]. In a copy of the keys, the place key is written once, or at
// another revision.
func (s *objects) Prepare(ctx context.Context) error {
	key := s.prefix + placeKey
	put := []clientv3.Op{clientv3.OpPut(key, lease.NewNonce())}
	for version := range int64(2) {
		if _, err := s.commit(ctx, put,
			clientv3.Compare(clientv3.Version(key), "=", version)); err != nil {
			return err
		}
	}
	return nil
}

// Read implements [driver.Objects].
func (s *objects) Read(ctx context.Context, name string) (driver.Object, error) {
	got, err := s.commit(ctx,
		[]clientv3.Op{clientv3.OpGet(s.prefix + name), clientv3.OpGet(s.prefix + placeKey)})
	if err != nil {
		return driver.Object{}, err
	}
	o := object(values(got.Responses[0]))
	o.Place = placeOf(got.Header, values(got.Responses[1])).String()
	return o, nil
}

// place is where keys are: a cluster, and the value and two numbers of the place key there, or the
// zero value if there is no such key. The ID of a cluster is computed from its members' names and
// token, so several may have one ID. A restored snapshot has the same place.
type place struct {
	cluster           uint64
	revision, version int64
	drawn             string
}

func placeOf(header *etcdserverpb.ResponseHeader, kvs []*mvccpb.KeyValue) (p place) {
	if len(kvs) > 0 {
		p = place{header.GetClusterId(), kvs[0].CreateRevision, kvs[0].Version,
			string(kvs[0].Value)}
	}
	return p
}

const placeForm = "cluster %x, revision %d, version %d, %s"

func (p place) String() string {
	if p == (place{}) {
		return ""
	}
	return fmt.Sprintf(placeForm, p.cluster, p.revision, p.version, p.drawn)
}

// Write implements [driver.Objects]. The store compares what it returns with what was sent. etcd
// compares the place, except the cluster's ID, which only its response contains.
func (s *objects) Write(ctx context.Context, name string, data []byte,
	version, at string) (driver.Object, error) {
	var want place
	if _, err := fmt.Sscanf(at, placeForm, &want.cluster, &want.revision,
		&want.version, &want.drawn); err != nil {
		return driver.Object{}, fmt.Errorf("%w: %q is no place", lease.ErrMoved, at)
	}
	key, mark := s.prefix+name, s.prefix+placeKey
	unchanged := clientv3.Compare(clientv3.Value(key), "=", version)
	if version == "" {
		unchanged = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	}
	answer, err := s.kv.Txn(ctx).If(unchanged,
		clientv3.Compare(clientv3.CreateRevision(mark), "=", want.revision),
		clientv3.Compare(clientv3.Version(mark), "=", want.version),
		clientv3.Compare(clientv3.Value(mark), "=", want.drawn),
	).Then(clientv3.OpPut(key, string(data)), clientv3.OpGet(key)).
		Else(clientv3.OpGet(mark)).Commit()
	switch {
	case err != nil:
		return driver.Object{}, s.failed(err)
	case answer.Succeeded && answer.Header.ClusterId != want.cluster:
		return driver.Object{}, fmt.Errorf("another cluster wrote %s: %x", key,
			answer.Header.ClusterId)
	case answer.Succeeded:
		return object(values(answer.Responses[1])), nil
	case placeOf(answer.Header, values(answer.Responses[0])) != want:
		return driver.Object{}, lease.ErrMoved
	}
	return driver.Object{}, driver.ErrChanged
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
