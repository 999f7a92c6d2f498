package k8sstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// access says how to reach an API server, as files say it at some moment.
type access struct {
	server    string // URL
	context   string // of a kubeconfig
	namespace string // "" if they do not say it
	transport transport
	token     string
	plugin    *plugin // makes credentials, if there are none
}

// transport is what connections are made with. All of it is comparable.
type transport struct {
	ca         string // PEM; "" stands for the system's
	cert, key  string // PEM
	serverName string
	insecure   bool
	proxy      string // URL
}

// reread is the age at which the files are read again: the kubelet replaces a
// token long before it expires, and so do other tools.
const reread = time.Minute

// session keeps a connection, and credentials that are replaced from time to
// time.
type session struct {
	read   func() (access, error)
	lock   chan struct{} // of what follows; a plugin may take long
	closed bool
	since  time.Time // when the files were read
	access access
	made   credentials // by the plugin
	used   transport
	client *http.Client // nil before the first connection
}

// newSession reads the files once, which tells the namespace and what is wrong
// with them.
func newSession(read func() (access, error)) (*session, error) {
	checked := func() (access, error) {
		a, err := read()
		if err == nil {
			_, err = a.transport.make()
		}
		return a, err
	}
	a, err := checked()
	return &session{read: checked, lock: make(chan struct{}, 1), access: a, since: time.Now()}, err
}

var errClosed = errors.New("the store is closed")

// connect implements [api].
func (s *session) connect(ctx context.Context, refused bool) (connection, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return connection{}, ctx.Err()
	}
	if s.closed {
		return connection{}, errClosed
	}
	if refused || time.Since(s.since) >= reread {
		a, err := s.read()
		if err != nil && refused {
			return connection{}, err
		}
		if err == nil && a.server != s.access.server {
			return connection{}, fmt.Errorf("%w: the server was %s, and the kubeconfig now says %s: "+
				"another server has other leases, so restart this process to use it",
				lease.ErrMisconfigured, s.access.server, a.server)
		}
		if err == nil { // otherwise somebody may be replacing them
			s.access, s.since = a, time.Now()
		}
	}
	t, token := s.access.transport, s.access.token
	if p := s.access.plugin; p != nil {
		if refused || s.made.over() {
			made, err := p.run(ctx, s.access)
			if err != nil {
				return connection{}, err
			}
			s.made = made
		}
		token = s.made.token
		if s.made.cert != "" {
			t.cert, t.key = s.made.cert, s.made.key
		}
	}
	if s.client == nil || s.used != t {
		made, err := t.make()
		if err != nil {
			return connection{}, err
		}
		if s.client != nil {
			s.client.CloseIdleConnections()
		}
		s.client, s.used = &http.Client{Transport: made, CheckRedirect: noRedirect}, t
	}
	return connection{client: s.client, server: s.access.server, token: token}, nil
}

// noRedirect lets a redirect be the response: API servers send none.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (s *session) close() {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.closed = true
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// make returns a transport of HTTP/1.1. A process that only renews its lease
// needs one connection, which is closed between two renewals.
func (t transport) make() (*http.Transport, error) {
	made := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 32, // which a search or a list uses
		IdleConnTimeout:     90 * time.Second,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ServerName:         t.serverName,
			InsecureSkipVerify: t.insecure, //nolint:gosec // what the kubeconfig says
		},
	}
	if t.ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(t.ca)) {
			return nil, errors.New("the certificate authority has no certificate in PEM form")
		}
		made.TLSClientConfig.RootCAs = pool
	}
	if t.cert != "" || t.key != "" {
		pair, err := tls.X509KeyPair([]byte(t.cert), []byte(t.key))
		if err != nil {
			return nil, fmt.Errorf("the client certificate: %w", err)
		}
		made.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	if t.proxy != "" {
		proxy, err := url.Parse(t.proxy)
		if err != nil || proxy.Host == "" {
			return nil, errors.New("proxy-url is no URL")
		}
		made.Proxy = http.ProxyURL(proxy)
	}
	return made, nil
}
