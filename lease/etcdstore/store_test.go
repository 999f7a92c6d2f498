package etcdstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// counted counts round trips.
type counted struct {
	clientv3.KV
	n atomic.Int64
}

func (c *counted) Txn(ctx context.Context) clientv3.Txn {
	c.n.Add(1)
	return c.KV.Txn(ctx)
}

func (c *counted) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	c.n.Add(1)
	return c.KV.Do(ctx, op)
}

func (c *counted) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.n.Add(1)
	return c.KV.Get(ctx, key, opts...)
}

// Those of a process and of a fleet are in docs/operating.md.
func TestRequests(t *testing.T) {
	kv, prefix := &counted{KV: newClient(t, address(t))}, newPrefix(t)
	calls.Costs(t, func() (driver.Store, error) { return New(kv, prefix) }, &kv.n, map[string]int64{
		"start": 1, "acquire": 2, "acquire again": 1, "renew": 2, "get": 1, "release": 2, "list": 1,
	})
}

// altering is a proxy that changes values on their way to etcd.
type altering struct{ clientv3.KV }

func (a altering) Txn(ctx context.Context) clientv3.Txn { return alteringTxn{a.KV.Txn(ctx)} }

type alteringTxn struct{ clientv3.Txn }

func (a alteringTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	return alteringTxn{a.Txn.If(conditions...)}
}

func (a alteringTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for i, op := range ops {
		if op.IsPut() {
			ops[i] = clientv3.OpPut(string(op.KeyBytes()), strings.ToUpper(string(op.ValueBytes())))
		}
	}
	return alteringTxn{a.Txn.Then(ops...)}
}

// What etcd has after a write is compared with what was sent.
func TestAlteredValues(t *testing.T) {
	client, prefix := newClient(t, address(t)), newPrefix(t)
	opened := 0
	err := calls.Everything(t.Context(), func() (driver.Store, error) {
		if opened++; opened > 1 { // the client of the process
			return New(altering{client}, prefix)
		}
		return New(client, prefix)
	}, nil)
	wantError(t, "acquire", err, pages.ErrAltered, "acquire")
}

// asked is an etcd that is asked for one key.
type asked struct {
	clientv3.KV
	key string
}

func (a *asked) Get(_ context.Context, key string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	a.key = key
	return nil, errors.New("nothing is sent")
}

func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "/traceflake/leases/config", "/fleet/": "/fleet/config", "/a/b": "/a/b/config"} {
		kv := &asked{}
		s, err := New(kv, prefix)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Describe(t.Context())
		if wantError(t, want, err, nil, "nothing is sent"); kv.key != want {
			t.Errorf("the key is %s, want %s", kv.key, want)
		}
	}
	for _, none := range []clientv3.KV{nil, (*clientv3.Client)(nil)} {
		_, err := New(none, "")
		wantError(t, "no client", err, lease.ErrInvalidRequest)
	}
}

func TestURL(t *testing.T) {
	prefix := newPrefix(t)
	for _, path := range []string{prefix, prefix + "fleet"} {
		if err := calls.Everything(t.Context(), func() (driver.Store, error) { return driver.Open("etcd://" + address(t) + path) }, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	got, err := newClient(t, address(t)).Get(t.Context(), prefix+"fleet/config")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("the prefix of the URL is not used: %v, %v", got, err)
	}
	s, err := driver.Open("etcd://" + address(t) + prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err = s.Get(t.Context(), 0)
	wantError(t, "after close", err, nil, "closed")
	for _, url := range []string{
		"etcd:", "etcd:host:2379", "etcd:///prefix", "etcd://user:hunter2@a:port", "etcd://a:1,,b:2",
		"etcd://a:2379/?timeout=3", "etcd://a:2379/?ca=file", "etcds://a:2379/?ca=/no/such/file", "etcds://a:2379/?ca=store_test.go", "etcds://a:2379/?cert=/no/such/file",
	} {
		_, err := driver.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}
}

// An unreachable or silent server does not delay Open, and calls obey their context, also while they
// connect with a password.
func TestUnreachableServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, host := range []string{"127.0.0.1:1", silent.Addr().String()} {
		for _, user := range []string{"", "user:hunter2@"} {
			for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
				s, err := driver.Open("etcd://" + user + host)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				if errors.Is(want, context.Canceled) {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(200*time.Millisecond, cancel)
				}
				began := time.Now()
				_, err = s.Describe(ctx)
				wantError(t, user+host, err, want)
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s: a response after %s, want it after 0.2 s", user+host, took)
				}
				cancel()
			}
		}
	}
}
