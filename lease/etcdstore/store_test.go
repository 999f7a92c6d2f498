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

func TestRequests(t *testing.T) {
	kv, prefix := &counted{KV: newClient(t, address(t))}, newPrefix(t)
	ctx, now := context.Background(), time.Now()
	// The next process, which knows nothing.
	fresh := func() driver.Store {
		t.Helper()
		s, err := New(kv, WithPrefix(prefix))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	create(t, fresh(), nil)
	s := fresh()
	var g lease.Grant
	count := func(what string, want int64, call func() error) {
		t.Helper()
		before := kv.n.Load()
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := kv.n.Load() - before; got != want {
			t.Errorf("%s: %d requests, want %d", what, got, want)
		}
	}
	count("a start", 1, func() error { _, err := s.Describe(ctx); return err })
	count("acquire", 2, func() (err error) { g, err = s.Acquire(ctx, request(now)); return err })
	count("renew", 2, func() (err error) {
		g, err = s.Renew(ctx, g, renewal(g))
		return err
	})
	count("get", 1, func() error { _, err := s.Get(ctx, g.Node); return err })
	count("release", 2, func() error { return s.Release(ctx, g, lease.NewNonce(), now) })
	count("list", 1, func() error { _, err := s.List(ctx); return err })
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
	s, err := New(client, WithPrefix(prefix))
	create(t, s, err)
	g, err := s.Acquire(t.Context(), request(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = New(altering{client}, WithPrefix(prefix)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Renew(t.Context(), g, renewal(g))
	wantError(t, "renew", err, pages.ErrAltered)
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
	for want, opts := range map[string][]Option{
		"/traceflake/leases/config": nil, "/fleet/config": {WithPrefix("/fleet/")}, "/a/b/config": {WithPrefix("/a/b")},
	} {
		kv := &asked{}
		s, err := New(kv, opts...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Describe(t.Context())
		if wantError(t, want, err, nil, "nothing is sent"); kv.key != want {
			t.Errorf("the key is %s, want %s", kv.key, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	_, err = New(client, WithPrefix(""))
	wantError(t, "prefix", err, lease.ErrInvalidRequest)
	for _, none := range []clientv3.KV{nil, (*clientv3.Client)(nil)} {
		_, err := New(none)
		wantError(t, "no client", err, lease.ErrInvalidRequest)
	}
}

// A call that is canceled while it connects with a password, to a server that is silent, returns.
func TestCancelWhileConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	s, err := driver.Open("etcd://user:hunter2@" + silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(200*time.Millisecond, cancel).Stop()
	began := time.Now()
	_, err = s.Describe(ctx)
	wantError(t, "canceled", err, context.Canceled)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestDriver(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	prefix := newPrefix(t)
	for i, url := range []string{prefix + "a/", prefix + "a/fleet/", prefix + "a/fleet"} {
		url = "etcd://" + address(t) + url
		s, err := driver.Open(url)
		if i < 2 {
			create(t, s, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Acquire(ctx, request(now))
		if err != nil || g.Nodes != driver.DefaultBlockSize {
			t.Errorf("%s: got %+v, %v", url, g, err)
		}
		if err := errors.Join(s.Close(ctx), s.Close(ctx)); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
		_, err = s.Get(ctx, g.Node)
		wantError(t, "after close", err, nil, "closed")
	}
	got, err := newClient(t, address(t)).Get(ctx, prefix+"a/fleet/config")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("the prefix of the URL is not used: %v, %v", got, err)
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"etcd:", "etcd:host:2379", "etcd:///prefix", "etcd://user:hunter2@a:port", "etcd://a:1,,b:2",
		"etcd://a:2379/?timeout=3", "etcd://a:2379/?ca=file", "etcds://a:2379/?ca=/no/such/file", "etcds://a:2379/?cert=/no/such/file",
	} {
		_, err := driver.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}
}

// An unreachable or silent server does not delay Open, and calls obey their context.
func TestServerAway(t *testing.T) {
	ctx, now := context.Background(), time.Now()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, host := range []string{"127.0.0.1:1", l.Addr().String()} {
		for _, user := range []string{"", "user:hunter2@"} {
			began := time.Now()
			s, err := driver.Open("etcd://" + user + host)
			if err != nil {
				t.Fatalf("a dead server: %v", err)
			}
			call, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			_, err = s.Acquire(call, request(now))
			cancel()
			wantError(t, "a dead server", err, context.DeadlineExceeded)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("a dead server: an answer after %s, with a deadline of 0.3 s", took)
			}
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}
}
