package etcdstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/stores"
)

var wantError = calls.WantError("etcdstore: ", "hunter2")

// address returns that of an etcd in which the tests may write.
func address(tb testing.TB) string {
	tb.Helper()
	return calls.Server(tb, "TRACEFLAKETEST_ETCD", "host:port")
}

func newClient(tb testing.TB, address string) *clientv3.Client {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// newPrefix returns a prefix whose keys are deleted when the test ends.
func newPrefix(tb testing.TB) string {
	tb.Helper()
	prefix := "/traceflake-test/" + rand.Text() + "/"
	c := newClient(tb, address(tb))
	tb.Cleanup(func() {
		if _, err := c.Delete(context.Background(), prefix, clientv3.WithPrefix()); err != nil {
			tb.Error(err)
		}
	})
	return prefix
}

// The contract of Objects, on a real etcd.
func TestServer(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		prefix := newPrefix(tb)
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: address(tb),
			Open: func(address string) (driver.Objects, error) {
				s, err := stores.Open("etcd://" + address + prefix)
				if err != nil {
					return nil, err
				}
				tb.Cleanup(func() { _ = s.Close() })
				return s.(interface{ Objects() driver.Objects }).Objects(), nil
			},
			Delete: func(name string) error {
				_, err := newClient(tb, address(tb)).Delete(tb.Context(), prefix+name)
				return err
			},
		}
	})
}

// A copy of the keys in a cluster with the same ID has another place: the place key was written at
// another revision, or only once.
func TestPlace(t *testing.T) {
	header := &etcdserverpb.ResponseHeader{ClusterId: 1}
	original := place(header, []*mvccpb.KeyValue{{CreateRevision: 2, Version: 2}})
	for _, copied := range [][]*mvccpb.KeyValue{nil, {{CreateRevision: 2, Version: 1}},
		{{CreateRevision: 3, Version: 2}}} {
		if place(header, copied) == original {
			t.Errorf("%v has the place %s, too", copied, original)
		}
	}
	if place(&etcdserverpb.ResponseHeader{ClusterId: 2},
		[]*mvccpb.KeyValue{{CreateRevision: 2, Version: 2}}) == original {
		t.Error("two clusters have one place")
	}
}

// spy is a client that changes values on their way to etcd.
type spy struct{ clientv3.KV }

func (s spy) Txn(ctx context.Context) clientv3.Txn { return txn{s.KV.Txn(ctx)} }

type txn struct{ clientv3.Txn }

func (t txn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	return txn{t.Txn.If(conditions...)}
}

func (t txn) Then(ops ...clientv3.Op) clientv3.Txn {
	for i, op := range ops {
		if op.IsPut() {
			ops[i] = clientv3.OpPut(string(op.KeyBytes()), strings.ToUpper(string(op.ValueBytes())))
		}
	}
	return t.Txn.Then(ops...)
}

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	client, prefix := newClient(t, address(t)), newPrefix(t)
	calls.Restored(t, func() (stores.Store, error) { return New(client, prefix) })
}

// The data in etcd after a write is compared with the data sent.
func TestAlteredValues(t *testing.T) {
	client, prefix := newClient(t, address(t)), newPrefix(t)
	opened := 0
	err := calls.Everything(t.Context(), func() (stores.Store, error) {
		if opened++; opened > 1 { // the client of the process
			return New(spy{client}, prefix)
		}
		return New(client, prefix)
	})
	wantError(t, "acquire", err, nil, "acquire", "did not store what was sent")
}

// nowhere is a client that sends nothing and keeps the first key that was asked for.
type nowhere struct {
	clientv3.KV
	key string
}

func (n *nowhere) Txn(context.Context) clientv3.Txn { return unsent{to: n} }

type unsent struct {
	clientv3.Txn
	to *nowhere
}

func (u unsent) Then(ops ...clientv3.Op) clientv3.Txn {
	u.to.key = string(ops[0].KeyBytes())
	return u
}

func (unsent) Commit() (*clientv3.TxnResponse, error) {
	return nil, errors.New("nothing is sent")
}

func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "/traceflake/leases/config",
		"/fleet/": "/fleet/config", "/a/b": "/a/b/config"} {
		kv := &nowhere{}
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
	if err := calls.Everything(t.Context(), func() (stores.Store, error) {
		return stores.Open("etcd://" + address(t) + prefix + "fleet")
	}); err != nil {
		t.Error(err)
	}
	got, err := newClient(t, address(t)).Get(t.Context(), prefix+"fleet/config")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("the prefix of the URL is not used: %v, %v", got, err)
	}
	s, err := stores.Open("etcd://" + address(t) + prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err = s.Get(t.Context(), lease.Grant{})
	wantError(t, "after close", err, lease.ErrClosed)
	for _, url := range []string{
		"etcd:", "etcd:host:2379", "etcd:///prefix", "etcd://user:hunter2@a:port",
		"etcd://a:1,,b:2",
		"etcd://a:2379/?timeout=3", "etcd://a:2379/?ca=file", "etcds://a:2379/?ca=/no/such/file",
		"etcds://a:2379/?ca=store_test.go", "etcds://a:2379/?cert=/no/such/file",
	} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}
}

// The files of etcds are read for each connection: a member and its CA may get other certificates.
func TestRotatedCertificates(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca")
	var present atomic.Pointer[tls.Certificate]
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return present.Load(), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	rotate := func() {
		certificate, text := network.NewCertificate(t)
		present.Store(&certificate)
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate()
	s, err := stores.Open("etcds://" + listener.Addr().String() + "/?ca=" + ca)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = s.Time(ctx) }() // connects again and again
	for range 3 {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		// it fails if the client does not trust the certificate
		if err := conn.(*tls.Conn).HandshakeContext(ctx); err != nil {
			t.Error(err)
		}
		rotate()
		_ = conn.Close()
	}
}

// Calls wait for no longer than their contexts while they connect with a password, or another one
// does, to a server that does not answer.
func TestConnectingAtOnce(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	s, err := stores.Open("etcd://user:hunter2@" + silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	long, end := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := s.Describe(long)
		first <- err
	}()
	conn, err := silent.Accept() // now it connects
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Describe(short)
	wantError(t, "a second call", err, context.DeadlineExceeded)
	end()
	wantError(t, "the first call", <-first, context.Canceled)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
