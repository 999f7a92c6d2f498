package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// DefaultPrefix begins every key unless [New] or the URL gives another.
const DefaultPrefix = "/traceflake/leases/"

// blocksPerPage is how many blocks of a new store share a key: few processes
// write the same one, and a value is small.
const blocksPerPage = 64

// New returns a store in the etcd of client, which the caller must close. Every key begins with prefix;
// "" is [DefaultPrefix]. Fleets with different secrets need different prefixes, none of which is a
// prefix of another. New does not connect.
func New(client clientv3.KV, prefix string) (driver.Store, error) {
	c, ok := client.(*clientv3.Client)
	if client == nil || ok && c == nil {
		return nil, fmt.Errorf("etcdstore: %w: no client", lease.ErrInvalidRequest)
	}
	endpoints := []string{"etcd"}
	if ok {
		endpoints = c.Endpoints()
	}
	return newStore(&connection{client: client}, prefix, endpoints)
}

func newStore(c *connection, prefix string, endpoints []string) (driver.Store, error) {
	prefix = strings.TrimSuffix(cmp.Or(prefix, DefaultPrefix), "/") + "/" // or it might be a prefix of another
	return pages.New(&server{c, prefix, endpoints}, pages.Layout{Name: "etcdstore", BlocksPerPage: blocksPerPage})
}

// server is a [pages.Server] on the keys below a prefix. The version of a page is
// its value, which never recurs; etcd's revisions may, after a restore.
type server struct {
	*connection
	prefix    string
	endpoints []string // for errors
}

// Read implements [pages.Server].
func (s *server) Read(ctx context.Context, name string) (pages.Object, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return pages.Object{}, s.failed(err)
	}
	got, err := kv.Get(ctx, s.prefix+name)
	if err != nil {
		return pages.Object{}, s.failed(err)
	}
	return object(got.Kvs), nil
}

// Write implements [pages.Server].
func (s *server) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return pages.Object{}, s.failed(err)
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
		return pages.Object{}, s.failed(err)
	}
	var now pages.Object // the Store compares it with what was sent
	for _, r := range answer.Responses {
		now = object(r.GetResponseRange().GetKvs()) // the last one is of the OpGet
	}
	if !answer.Succeeded {
		return now, pages.ErrChanged
	}
	return now, nil
}

// List implements [pages.Server]. It lists the data too, all of one moment.
func (s *server) List(ctx context.Context) (map[string]pages.Object, error) {
	kv, err := s.kv(ctx)
	if err != nil {
		return nil, s.failed(err)
	}
	got, err := kv.Get(ctx, s.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, s.failed(err)
	}
	all := make(map[string]pages.Object, len(got.Kvs))
	for _, kv := range got.Kvs {
		all[strings.TrimPrefix(string(kv.Key), s.prefix)] = object([]*mvccpb.KeyValue{kv})
	}
	return all, nil
}

// object is the value of one key, or of none.
func object(kvs []*mvccpb.KeyValue) pages.Object {
	if len(kvs) == 0 {
		return pages.Object{}
	}
	return pages.Object{Data: kvs[0].Value, Version: string(kvs[0].Value)}
}

// failed adds to err how an operator can fix the cause.
func (s *server) failed(err error) error {
	var hint string
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		hint = "the user needs to read and write every key of " + s.prefix
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		hint = "set the user and the password: " + urlForm
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w (no response from %s)", err, strings.Join(s.endpoints, ", "))
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w (etcd's quota is used up: compact and defragment it, then disarm the alarm)", err)
	default:
		return err
	}
	return fmt.Errorf("%w: %w (%s)", lease.ErrMisconfigured, err, hint)
}
