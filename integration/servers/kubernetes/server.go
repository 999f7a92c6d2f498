// Package kubernetes runs a real API server of Kubernetes for tests: the kube-apiserver of
// apiserver/go.mod, on an etcd of its own. It has no controllers, so nothing else changes an
// object, and no nodes. `make kubernetes` builds it once, into .cache, and runs the tests.
package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
)

// The users of the server.
const (
	Admin   = "admin"   // may do everything
	Limited = "limited" // may do what roles allow
)

// Token is the token of a user, Admin or Limited.
func Token(user string) string { return "secret-of-" + user }

// Server is a running API server with its own etcd.
//
// Run starts it with the data it had, Kill ends it as a crash does, and Signal sends a signal to
// it, but not to its etcd.
type Server struct {
	*child.Server
	etcd    *etcd.Cluster
	admin   string // the URL of a proxy
	proxies []*httptest.Server
}

// Start starts a server, and returns when it answers. If it was not built, the error wraps
// [child.ErrNotInstalled].
func Start(ctx context.Context) (_ *Server, err error) {
	mod, err := os.ReadFile(
		filepath.Join(child.Repository, "integration/servers/kubernetes/apiserver/go.mod"))
	if err != nil {
		return nil, err
	}
	version := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(mod)[1]
	binary, err := child.Installed("kubernetes/kube-apiserver-"+string(version),
		"run `make kubernetes`")
	if err != nil {
		return nil, err
	}
	s := &Server{Server: &child.Server{Name: "kube-apiserver"}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Dir, err = os.MkdirTemp("", "traceflake-kubernetes-"); err != nil {
		return nil, err
	}
	tokens := Token(Admin) + ",admin,1,system:masters\n" + Token(Limited) + ",limited,2\n"
	if err := os.WriteFile(s.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return nil, err
	}
	s.admin = s.Proxy(Token(Admin))
	if s.etcd, err = etcd.Start(ctx, 1); err != nil {
		return nil, err
	}
	s.Command = func() *exec.Cmd { return s.command(binary) }
	s.Answers = func(ctx context.Context) error {
		_, err := s.Do(ctx, http.MethodGet, "/readyz", "", nil)
		if err == nil {
			_, err = s.Do(ctx, http.MethodGet, "/api/v1/namespaces/default", "", nil)
		}
		return err
	}
	return s, s.Start(ctx)
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Server) command(binary string) *exec.Cmd {
	return exec.Command(binary,
		"--etcd-servers=http://"+s.etcd.Endpoints()[0],
		"--bind-address=127.0.0.1", "--secure-port="+s.Port(),
		"--cert-dir="+s.Dir, // in which it creates a certificate, whose key also signs tokens
		"--token-auth-file="+s.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.path("apiserver.key"),
		"--service-account-signing-key-file="+s.path("apiserver.key"),
		"--disable-admission-plugins=ServiceAccount", // nothing makes accounts here
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24")
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	for _, p := range s.proxies {
		p.Close()
	}
	err := s.Server.Close()
	if s.etcd != nil {
		err = errors.Join(err, s.etcd.Close())
	}
	return err
}

// Proxy starts a proxy in front of the server that authenticates with a token, as kubectl proxy
// does with a kubeconfig, and returns its URL. It ends with the server.
func (s *Server) Proxy(token string) (url string) {
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", s.Address, ""
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, // on loopback
			MaxIdleConnsPerHost: 64,
			// The server closes idle connections after 90 seconds. A write on one that it is
			// closing would fail.
			IdleConnTimeout: 30 * time.Second,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	s.proxies = append(s.proxies, proxy)
	return proxy.URL
}

// Do sends a request as admin and returns the body of the response. If the status is not 2xx, it
// returns an error that begins with the status.
func (s *Server) Do(ctx context.Context, method, path, contentType string,
	body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.admin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", answer.Status, data)
	}
	return data, err
}
