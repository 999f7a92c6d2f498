package etcdstore

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func init() {
	driver.Register("etcd", openURL)
	driver.Register("etcds", openURL)
}

const (
	// DefaultPrefix begins every key unless [New] or the URL gives another.
	DefaultPrefix = "/traceflake/leases/"

	// blocksPerPage is how many blocks of a new store share a key: few processes write the same
	// one, and a value is small.
	blocksPerPage = 64

	urlForm = "etcd://user:password@host:port,host:port/prefix, or etcds://… for TLS"
)

// New returns a store in the etcd of client, which the caller must close. Every key begins with
// prefix; "" is [DefaultPrefix]. Fleets with different secrets need different prefixes, none of
// which is a prefix of another. New does not connect.
func New(client clientv3.KV, prefix string) (driver.Store, error) {
	c, ok := client.(*clientv3.Client)
	if client == nil || ok && c == nil {
		return nil, fmt.Errorf("etcdstore: %w: no client", lease.ErrInvalidRequest)
	}
	s := &server{client: client, config: clientv3.Config{Endpoints: []string{"etcd"}}}
	if ok {
		s.config.Endpoints = c.Endpoints()
	}
	return s.store(prefix)
}

// openURL is the [driver.Opener] of etcd and etcds. Query parameters of etcds name files in PEM
// form: ca, cert, key.
func openURL(text string) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, bad("want " + urlForm) // err may contain the password
	}
	s := &server{config: clientv3.Config{
		DialTimeout: 5 * time.Second,
		// detects a member that vanished without closing the connection
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // errors are returned
	}}
	scheme := "http://"
	query := u.Query()
	if u.Scheme == "etcds" {
		scheme = "https://"
		files := transport.TLSInfo{TrustedCAFile: query.Get("ca"), CertFile: query.Get("cert"),
			KeyFile: query.Get("key")}
		if s.config.TLS, err = files.ClientConfig(); err != nil {
			return nil, fmt.Errorf("etcdstore: %w: TLS: %w", lease.ErrInvalidRequest, err)
		}
		if pool := s.config.TLS.RootCAs; pool != nil && pool.Equal(x509.NewCertPool()) {
			return nil, bad("no certificate in " + files.TrustedCAFile)
		}
	}
	for name := range query {
		if u.Scheme != "etcds" || name != "ca" && name != "cert" && name != "key" {
			return nil, bad(fmt.Sprintf("unknown parameter %q", name))
		}
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if host == "" {
			return nil, bad("want " + urlForm)
		}
		s.config.Endpoints = append(s.config.Endpoints, scheme+host)
	}
	if u.User != nil {
		s.config.Username = u.User.Username()
		s.config.Password, _ = u.User.Password()
	}
	return s.store(strings.TrimSuffix(u.Path, "/"))
}

// bad is the error of an invalid URL, which may contain a password.
func bad(text string) error {
	return fmt.Errorf("etcdstore: %w: the URL: %s", lease.ErrInvalidRequest, text)
}

// server is a [driver.Objects] on the keys below a prefix. The version of a page is its value,
// which never recurs; etcd's revisions may, after a restore.
type server struct {
	prefix string
	// of a URL's client, which the first call creates: the server may be down
	config clientv3.Config

	cause atomic.Pointer[string] // of the last request that did not reach a member

	mu     sync.Mutex
	client clientv3.KV
	close  func() error // nil if the caller of New closes the client, or there is none yet
	closed bool
}

func (s *server) store(prefix string) (driver.Store, error) {
	// or it might be a prefix of another
	s.prefix = strings.TrimSuffix(cmp.Or(prefix, DefaultPrefix), "/") + "/"
	return driver.New(s, driver.Layout{Name: "etcdstore", BlocksPerPage: blocksPerPage})
}

// kv returns the client. To create one with a password contacts the server, until the context is
// over.
func (s *server) kv(ctx context.Context) (clientv3.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the store is closed")
	}
	if s.client != nil {
		return s.client, nil
	}
	config := s.config
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(s.remember))
	life, end := context.WithCancel(context.Background()) // of the client
	config.Context = life
	connected := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if err != nil {
		end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	if !connected() { // the call was canceled
		return nil, errors.Join(ctx.Err(), client.Close())
	}
	s.client, s.close = client, client.Close
	return client, nil
}

// remember keeps the error of a request that did not reach a member, such as a refused connection:
// etcd's client tries again until the context is over, and returns the context's error.
func (s *server) remember(ctx context.Context, method string, request, response any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, response, conn, options...)
	// "" if it reached one
	_, why, _ := strings.Cut(status.Convert(err).Message(), "connection error: desc = ")
	s.cause.Store(&why)
	return err
}

// CheckRights implements [driver.Rights]. etcd compares all of a transaction with the user's rights
// and its quota, also what is not carried out: no key has a negative revision.
func (s *server) CheckRights(ctx context.Context) error {
	kv, err := s.kv(ctx)
	if err == nil {
		key := s.prefix + "config"
		_, err = kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", -1)).Then(
			clientv3.OpPut(key, "")).Commit()
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

// Close implements [driver.Objects].
func (s *server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	closed := s.closed
	s.closed = true
	if s.close == nil || closed {
		return nil
	}
	return s.close()
}

// Read implements [driver.Objects].
func (s *server) Read(ctx context.Context, name string) (driver.Object, error) {
	got, err := s.get(ctx, s.prefix+name)
	if err != nil {
		return driver.Object{}, err
	}
	o := object(got.Kvs)
	o.Place = fmt.Sprintf("cluster %x", got.Header.GetClusterId())
	return o, nil
}

// List implements [driver.Objects]. It lists the data too, all of one moment.
func (s *server) List(ctx context.Context) (map[string]driver.Object, error) {
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

func (s *server) get(ctx context.Context, key string,
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
func (s *server) Write(ctx context.Context, name string, data []byte,
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

// object is the value of the first key, or of none.
func object(kvs []*mvccpb.KeyValue) driver.Object {
	if len(kvs) == 0 {
		return driver.Object{}
	}
	return driver.Object{Data: kvs[0].Value, Version: string(kvs[0].Value)}
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
		err = fmt.Errorf("%w (no response from %s)", err, strings.Join(s.config.Endpoints, ", "))
		if why := s.cause.Load(); why != nil && *why != "" {
			err = fmt.Errorf("%w: %s", err, *why)
		}
		return err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf(
			"%w (etcd's quota is used up: compact and defragment it, then disarm the alarm)", err)
	default:
		return err
	}
	return fmt.Errorf("%w: %w (%s)", lease.ErrMisconfigured, err, hint)
}
