package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/etcdstore"
	"github.com/traceflake/traceflake/lease/leasetest"
)

var wantError = calls.WantError("etcdstore", "secret")

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
	client := etcd.ForTest(t, 1).ClientForTest(t)
	ctx, now := context.Background(), time.Now()
	kv := &counted{KV: client}
	// The next process, which knows nothing.
	fresh := func() driver.Store {
		t.Helper()
		s, err := etcdstore.New(kv)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	leasetest.Storage{Open: func() (driver.Store, error) { return fresh(), nil }}.Create(t, lease.Description{})
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
	count("acquire", 2, func() (err error) { g, err = s.Acquire(ctx, calls.Request(now)); return err })
	count("renew", 2, func() (err error) {
		g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
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
	client := etcd.ForTest(t, 1).ClientForTest(t)
	stored := storage(client, etcdstore.DefaultPrefix)
	stored.Create(t, lease.Description{})
	s, err := etcdstore.New(altering{client})
	if err != nil {
		t.Fatal(err)
	}
	g, err := stored.Client(t).Acquire(t.Context(), calls.Request(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Renew(t.Context(), g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
	wantError(t, "renew", err, pages.ErrAltered)
}

func TestBadOptions(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	_, err = etcdstore.New(client, etcdstore.WithPrefix(""))
	wantError(t, "prefix", err, lease.ErrInvalidRequest)
	for _, none := range []clientv3.KV{nil, (*clientv3.Client)(nil)} {
		_, err := etcdstore.New(none)
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
	s, err := driver.Open("etcd://user:secret@" + silent.Addr().String())
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
	cluster := etcd.ForTest(t, 1)
	ctx, now := context.Background(), time.Now()
	address := "etcd://" + strings.Join(cluster.Endpoints(), ",")
	for i, url := range []string{address, address + "/a/fleet/", address + "/a/fleet"} {
		open := func() (driver.Store, error) { return driver.Open(url) }
		if i < 2 {
			leasetest.Storage{Open: open}.Create(t, lease.Description{})
		}
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Acquire(ctx, calls.Request(now))
		if err != nil || g.Nodes != driver.DefaultBlockSize {
			t.Errorf("%s: got %+v, %v", url, g, err)
		}
		if err := errors.Join(s.Close(ctx), s.Close(ctx)); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
		_, err = s.Get(ctx, g.Node)
		wantError(t, "after close", err, nil, "closed")
	}
	got, err := cluster.ClientForTest(t).Get(ctx, "/a/fleet/config")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("the prefix of the URL is not used: %v, %v", got, err)
	}

	for _, url := range []string{
		"etcd:", "etcd:host:2379", "etcd:///prefix", "etcd://user:secret@a:port", "etcd://a:1,,b:2",
		"etcd://a:2379/?timeout=3", "etcd://a:2379/?ca=file", "etcds://a:2379/?ca=/no/such/file", "etcds://a:2379/?cert=/no/such/file",
	} {
		_, err := driver.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}

	// An unreachable or silent server does not delay Open.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, host := range []string{"127.0.0.1:1", l.Addr().String()} {
		for _, user := range []string{"", "user:secret@"} {
			began := time.Now()
			s, err := driver.Open("etcd://" + user + host)
			if err != nil {
				t.Fatalf("a dead server: %v", err)
			}
			call, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			_, err = s.Acquire(call, calls.Request(now))
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

// With the least rights that the documentation requires, and with none.
func TestRights(t *testing.T) {
	cluster := etcd.ForTest(t, 1)
	client := cluster.ClientForTest(t)
	ctx, now := context.Background(), time.Now()
	end := clientv3.GetPrefixRangeEnd("/fleet/")
	steps := []func() error{
		func() error { _, err := client.RoleAdd(ctx, "fleet"); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, "fleet", "/fleet/", end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := client.UserAdd(ctx, "user", "secret"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "user", "fleet"); return err },
		func() error { _, err := client.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	try := func(url string) error {
		s, err := driver.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(ctx) }()
		d, err := driver.NewDescription(lease.Description{})
		if err == nil {
			err = s.Create(ctx, d)
		}
		if err == nil {
			_, err = s.Acquire(ctx, calls.Request(now))
		}
		if err == nil {
			_, err = s.Raise(ctx, now)
		}
		return err
	}
	host := cluster.Endpoints()[0]
	if err := try("etcd://user:secret@" + host + "/fleet/"); err != nil {
		t.Errorf("with the rights it needs: %v", err)
	}
	wantError(t, "another prefix", try("etcd://user:secret@"+host+"/other/"), nil, "permission denied", "read and write")
	wantError(t, "nobody", try("etcd://"+host+"/fleet/"), nil)
	wantError(t, "a wrong password", try("etcd://user:wrong@"+host+"/fleet/"), nil)
}
