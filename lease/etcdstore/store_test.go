package etcdstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
			Server: address(tb),
			Open: func(address string) (driver.Objects, error) {
				return &objects{client: newClient(tb, address), prefix: prefix,
					turn: make(chan struct{}, 1)}, nil
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
	for _, path := range []string{prefix, prefix + "fleet"} {
		if err := calls.Everything(t.Context(),
			func() (stores.Store, error) {
				return stores.Open("etcd://" + address(t) + path)
			}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
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
	dir, target := t.TempDir(), address(t)
	var present atomic.Pointer[tls.Certificate]
	rotate := func() {
		certificate, text := network.NewCertificate(t)
		if err := os.WriteFile(filepath.Join(dir, "ca"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		present.Store(&certificate)
	}
	rotate()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return present.Load(), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	accepted := make(chan net.Conn, 100)
	go func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			accepted <- client
			go func() {
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
				_, _ = io.Copy(client, server)
				_ = client.Close()
			}()
		}
	}()
	s, err := stores.Open("etcds://" + listener.Addr().String() + newPrefix(t) +
		"?ca=" + dir + "/ca")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := s.Time(ctx)
		// a request fails if the client has not noticed yet that its connection was closed
		for status.Code(err) == codes.Unavailable && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			_, err = s.Time(ctx)
		}
		if cancel(); err != nil {
			t.Fatal(err)
		}
		rotate()
		_ = (<-accepted).Close()
	}
}

// An unreachable or silent server does not delay Open, and calls obey their context, also while
// they connect with a password.
func TestUnreachableServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, host := range []string{"127.0.0.1:1", silent.Addr().String()} {
		for _, user := range []string{"", "user:hunter2@"} {
			for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
				s, err := stores.Open("etcd://" + user + host)
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
				if err := s.Close(); err != nil {
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

// A call waits for no longer than its context while another one connects with a password.
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
	began := time.Now()
	_, err = s.Describe(short)
	wantError(t, "a second call", err, context.DeadlineExceeded)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s, want its 0.1 s", took)
	}
	end()
	wantError(t, "the first call", <-first, context.Canceled)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
