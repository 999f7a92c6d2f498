package etcdstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
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

// newPrefix returns a client, and a prefix whose keys are deleted when the test ends.
func newPrefix(tb testing.TB) (c *clientv3.Client, prefix string) {
	tb.Helper()
	c, err := clientv3.New(
		clientv3.Config{Endpoints: []string{address(tb)}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	prefix = "/traceflake-test/" + rand.Text() + "/"
	tb.Cleanup(func() {
		_, err := c.Delete(context.Background(), prefix, clientv3.WithPrefix())
		if err := errors.Join(err, c.Close()); err != nil {
			tb.Error(err)
		}
	})
	return c, prefix
}

// The contract of Objects, on a real etcd.
func TestServer(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		client, prefix := newPrefix(tb)
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: address(tb),
			Open: func(address string) (driver.Objects, error) {
				return calls.Objects(tb, "etcd://"+address+prefix), nil
			},
			Delete: func(name string) error {
				_, err := client.Delete(tb.Context(), prefix+name)
				return err
			},
		}
	})
}

// A copy of the keys has another place, also in a cluster with the same ID: the place key was
// written at another revision, or only once. Its own cluster refuses what was read elsewhere.
func TestPlace(t *testing.T) {
	client, prefix := newPrefix(t)
	o := &objects{kv: client, prefix: prefix}
	original := calls.NewPlace(t, o)
	copyKeys := func(to string) {
		t.Helper()
		all, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all.Kvs {
			if _, err := client.Put(t.Context(), strings.Replace(string(kv.Key), prefix, to, 1),
				string(kv.Value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, copied := range []*objects{
		{kv: client, prefix: prefix + "copy/"},
		{kv: client, prefix: prefix + "created/"}, // and then overwritten by a copy
	} {
		if strings.Contains(copied.prefix, "created") {
			calls.NewPlace(t, copied)
		}
		copyKeys(copied.prefix)
		original.Refuses(t, copied)
	}
	_, at, _ := strings.Cut(original.Place, ",")
	_, err := o.Write(t.Context(), "config", []byte("sent"), original.Version, "cluster 1,"+at)
	if err == nil || errors.Is(err, lease.ErrMoved) { // which says that nothing was written
		t.Errorf("a write that another cluster acknowledged: %v", err)
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

// Write returns the data in etcd, which the store compares with the data sent.
func TestAlteredValues(t *testing.T) {
	client, prefix := newPrefix(t)
	o, err := calls.Write(t.Context(), &objects{kv: spy{client}, prefix: prefix}, "config",
		"sent", "")
	if err != nil || string(o.Data) != "SENT" {
		t.Errorf("got %q, %v; want what was stored", o.Data, err)
	}
}

func TestNew(t *testing.T) {
	for prefix, want := range map[string]string{"": "/traceflake/leases/", "/fleet/": "/fleet/",
		"/a/b": "/a/b/"} {
		s, err := New(spy{}, prefix)
		if err != nil {
			t.Fatal(err)
		}
		o := s.(interface{ Objects() driver.Objects }).Objects()
		if got := o.(*objects).prefix; got != want {
			t.Errorf("the prefix of %q is %s, want %s", prefix, got, want)
		}
		if err := s.Close(); err != nil { // not of the client
			t.Error(err)
		}
	}
	for _, none := range []clientv3.KV{nil, (*clientv3.Client)(nil)} {
		_, err := New(none, "")
		wantError(t, "no client", err, lease.ErrInvalidRequest)
	}
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
	o := calls.Objects(t, "etcds://"+listener.Addr().String()+"/?ca="+ca)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = o.Read(ctx, "config") }() // connects again and again
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

// Each recorded answer has the meaning and the fix of its row. Those to connections have the URL's
// scheme as their code; they are the cause if the time is over.
func TestAnswers(t *testing.T) {
	calls.Answers(t, answers, func(row driver.Answer, message string) error {
		if row.Code == "-" {
			return new(objects).failed(rpctypes.Error(status.Error(codes.Unknown, message)))
		}
		return unanswered(t, row.Code, message)
	}, "{url}", urlForm, "{prefix}", "")
	// gRPC closed the connection, which says nothing about the member.
	closed := unanswered(t, "etcd",
		"error reading server preface: use of closed network connection")
	if want := lease.Fix(driver.Diagnose(context.DeadlineExceeded)); lease.Fix(closed) != want {
		t.Errorf("%v has the fix %q, want %q", closed, lease.Fix(closed), want)
	}
}

// unanswered returns the error of a call whose time is over, after gRPC reported this.
func unanswered(t *testing.T, scheme, message string) error {
	s := &objects{scheme: scheme}
	_ = s.remember(t.Context(), "", nil, nil, nil, func(context.Context, string, any, any,
		*grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.Unavailable, "connection error: desc = "+message)
	})
	err := s.failed(context.DeadlineExceeded)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v does not say that the time is over", message, err)
	}
	return err
}

// A server that demands a certificate of the client: without one, and with one that it does not
// trust, the fix says so.
func TestMutualTLS(t *testing.T) {
	certificate, text := network.NewCertificate(t)
	file := filepath.Join(t.TempDir(), "pem")
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o600),
		os.WriteFile(file+".key", private, 0o600)); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			_ = conn.Close()
		}
	}()
	url := "etcds://" + listener.Addr().String() + "?ca=" + file
	for _, url := range []string{url, url + "&cert=" + file + "&key=" + file + ".key"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := calls.Open(t, url).Describe(ctx)
		cancel()
		if !strings.HasPrefix(lease.Fix(err), "set a client certificate that the server trusts") {
			t.Errorf("%s: %v has the fix %q", url, err, lease.Fix(err))
		}
	}
}

// With a password, too, a store is opened while no server is there.
func TestPassword(t *testing.T) {
	s := calls.Open(t, "etcd://user:hunter2@127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Describe(ctx)
	wantError(t, "no server", err, context.DeadlineExceeded, "start the server")
}
