package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func init() {
	driver.Register("etcd", openURL)
	driver.Register("etcds", openURL)
}

// connection is a client: that of [New], or the one of a URL, which the first call creates: with a
// password, that contacts the server, which may be down.
type connection struct {
	config clientv3.Config

	mu     sync.Mutex
	client clientv3.KV
	close  func() error // nil if the caller of New closes it, or there is none yet
	closed bool
}

var errClosed = errors.New("the store is closed")

func (d *connection) kv(ctx context.Context) (clientv3.KV, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case d.closed:
		return nil, errClosed
	case d.client != nil:
		return d.client, nil
	}
	config := d.config
	if deadline, ok := ctx.Deadline(); ok {
		config.DialTimeout = min(config.DialTimeout, time.Until(deadline))
	}
	life, end := context.WithCancel(context.Background()) // of the client
	config.Context = life
	connected := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if err != nil {
		end()
		return nil, errors.Join(err, ctx.Err())
	}
	if !connected() { // the call was canceled
		return nil, errors.Join(ctx.Err(), client.Close())
	}
	d.client, d.close = client, client.Close
	return client, nil
}

// Close implements [driver.Store].
func (d *connection) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.close == nil {
		return nil
	}
	err := d.close()
	d.client, d.close = nil, nil
	return err
}

const urlForm = "etcd://user:password@host:port,host:port/prefix, or etcds://… for TLS"

// openURL is the [driver.Opener] of etcd and etcds. Query parameters of etcds
// name files in PEM form: ca, cert, key.
func openURL(text string) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, bad("want " + urlForm) // err may contain the password
	}
	d := &connection{config: clientv3.Config{
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    10 * time.Second, // detects a member that vanished without closing the connection
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // errors are returned
	}}
	scheme := "http://"
	query := u.Query()
	if u.Scheme == "etcds" {
		scheme = "https://"
		files := transport.TLSInfo{TrustedCAFile: query.Get("ca"), CertFile: query.Get("cert"), KeyFile: query.Get("key")}
		if d.config.TLS, err = files.ClientConfig(); err != nil {
			return nil, fmt.Errorf("etcdstore: %w: TLS: %w", lease.ErrInvalidRequest, err)
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
		d.config.Endpoints = append(d.config.Endpoints, scheme+host)
	}
	if u.User != nil {
		d.config.Username = u.User.Username()
		d.config.Password, _ = u.User.Password()
	}
	return newStore(d, strings.TrimSuffix(u.Path, "/"), d.config.Endpoints)
}

// bad is the error of an invalid URL, which may contain a password.
func bad(text string) error {
	return fmt.Errorf("etcdstore: %w: the URL: %s", lease.ErrInvalidRequest, text)
}
