package k8sstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// accountDir is where the kubelet mounts the service account of a pod.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// account is the service account of a pod, as files say it at some moment. It is
// comparable.
type account struct{ server, namespace, token, ca string }

// readAccount reads how a pod reaches the API server of its cluster.
func readAccount(dir string) (a account, err error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return a, errors.New("this is no pod, because KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; " +
			"run `kubectl proxy` and add ?server=http://127.0.0.1:8001 to the address")
	}
	a.server = "https://" + net.JoinHostPort(host, port)
	var errs []error
	for name, to := range map[string]*string{"token": &a.token, "ca.crt": &a.ca, "namespace": &a.namespace} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if *to = strings.TrimSpace(string(b)); err == nil && *to == "" {
			err = fmt.Errorf("%s is empty", filepath.Join(dir, name))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the pod's service account: %w (is automountServiceAccountToken false?)", err))
		}
	}
	return a, errors.Join(errs...)
}

// pod reads the files of its service account for each request: the kubelet replaces the token long
// before it expires.
type pod struct {
	dir string

	mu sync.Mutex
	account
	client *http.Client
}

// newPod reads the files, which tell the namespace and what is wrong with them.
func newPod(dir string) (*pod, error) {
	p := &pod{dir: dir}
	return p, p.read()
}

func (p *pod) read() error {
	a, err := readAccount(p.dir)
	if err != nil {
		return err
	}
	if p.client == nil || a.ca != p.ca {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(a.ca)) {
			return fmt.Errorf("the pod's service account: %s has no certificate in PEM form", filepath.Join(p.dir, "ca.crt"))
		}
		if p.client != nil {
			p.client.CloseIdleConnections()
		}
		p.client = newClient(roots)
	}
	p.account = a
	return nil
}

func (p *pod) connect() connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	stale := p.read() // what was read before is used then: the kubelet may be replacing the files
	return connection{client: p.client, server: p.server, token: p.token, stale: stale}
}

// newClient returns a client of HTTP/1.1. A process that only renews its lease
// needs one connection, which is closed between two renewals.
func newClient(roots *x509.CertPool) *http.Client {
	return &http.Client{CheckRedirect: noRedirect, Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 32, // which a search or a list uses
		IdleConnTimeout:     90 * time.Second,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}}
}

// noRedirect lets a redirect be the response: API servers send none.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
