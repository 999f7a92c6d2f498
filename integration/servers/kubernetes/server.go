package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
)

// Version is that of Kubernetes, as in the go.mod of apiserver.
const Version = "v1.36.3"

// The users of the server.
const (
	Admin   = "admin"   // may do everything
	Limited = "limited" // may do what roles allow
)

// Server is a running API server with its own etcd.
//
// Run starts it with the data it had, Kill ends it as a crash does, and Signal sends it a signal, not its
// etcd.
type Server struct {
	*child.Server
	etcd      *etcd.Cluster
	transport *http.Transport // trusts the server's certificate
}

// ForTest starts a server for a test, with flags of kube-apiserver, which ends
// with it. The test is skipped if the server was not built; `make kubernetes`
// builds it.
func ForTest(tb testing.TB, flags ...string) *Server {
	tb.Helper()
	binary := find(tb)
	return child.ForTest(tb, func(ctx context.Context) (*Server, error) { return start(ctx, binary, flags...) })
}

var shared struct {
	sync.Mutex
	server *Server
}

// Shared is ForTest for tests that can use one server, which [Main] ends.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		return shared.server
	}
	binary := find(tb)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := start(ctx, binary)
	if err != nil {
		tb.Fatal(err)
	}
	shared.server = s
	return s
}

// Main runs the tests of a package and ends the process.
func Main(m *testing.M) {
	etcd.Main()
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// find returns the path of the server, or skips the test.
func find(tb testing.TB) string {
	tb.Helper()
	path, err := binary()
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// binary returns the path of the server, which is in .cache of the repository.
func binary() (string, error) {
	root, err := child.Repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "kubernetes", "kube-apiserver-"+Version)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("kube-apiserver %s was not built, run make kubernetes: %w", Version, err)
	}
	return path, nil
}

// Start starts a server, and returns when it answers. If it was not built the error wraps
// [fs.ErrNotExist].
func Start(ctx context.Context) (*Server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	return start(ctx, path)
}

func start(ctx context.Context, binary string, flags ...string) (_ *Server, err error) {
	s := &Server{Server: child.New("kube-apiserver", nil)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Dir, err = os.MkdirTemp("", "traceflake-kubernetes-"); err != nil {
		return nil, err
	}
	if err := s.files(); err != nil {
		return nil, err
	}
	if s.etcd, err = etcd.Start(ctx, 1); err != nil {
		return nil, err
	}
	s.Command = func() *exec.Cmd { return s.command(binary, flags) }
	s.Answers = func(ctx context.Context) error {
		_, err := s.Do(ctx, http.MethodGet, "/readyz", "", nil)
		if err == nil {
			_, err = s.Do(ctx, http.MethodGet, "/api/v1/namespaces/default", "", nil)
		}
		return err
	}
	return s, s.Start(ctx)
}

// files writes what the server reads when it starts: the certificate is that of httptest, for
// 127.0.0.1, whose key also signs the tokens of service accounts.
func (s *Server) files() error {
	local := httptest.NewTLSServer(nil)
	defer local.Close()
	pool := x509.NewCertPool()
	pool.AddCert(local.Certificate())
	s.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64}
	key, err := x509.MarshalPKCS8PrivateKey(local.TLS.Certificates[0].PrivateKey)
	if err != nil {
		return err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: local.Certificate().Raw})
	return errors.Join(
		os.WriteFile(s.path("serving.crt"), certificate, 0o600),
		os.WriteFile(s.path("serving.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
		os.WriteFile(s.path("tokens.csv"), []byte("secret-of-admin,admin,1,system:masters\nsecret-of-limited,limited,2\n"), 0o600))
}

func (s *Server) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Server) command(binary string, flags []string) *exec.Cmd {
	return exec.Command(binary, append([]string{
		"--etcd-servers=http://" + s.etcd.Endpoints()[0],
		"--bind-address=127.0.0.1", "--secure-port=" + s.Port(),
		"--tls-cert-file=" + s.path("serving.crt"), "--tls-private-key-file=" + s.path("serving.key"),
		"--token-auth-file=" + s.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.path("serving.key"),
		"--service-account-signing-key-file=" + s.path("serving.key"),
		"--disable-admission-plugins=ServiceAccount", // nothing makes accounts here
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
	}, flags...)...)
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	err := s.Server.Close()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	if s.etcd != nil {
		err = errors.Join(err, s.etcd.Close())
	}
	return err
}

// URL is that of the server.
func (s *Server) URL() string { return "https://" + s.Address }

// Token is the token of a user, Admin or Limited.
func (s *Server) Token(user string) string { return "secret-of-" + user }

// Proxy returns the URL of [Server.NewProxy], until the test ends.
func (s *Server) Proxy(tb testing.TB, token string) string {
	tb.Helper()
	proxy := s.NewProxy(token)
	tb.Cleanup(proxy.Close)
	return proxy.URL
}

// NewProxy starts a proxy in front of the server that authenticates with a token, as kubectl proxy does
// with a kubeconfig.
func (s *Server) NewProxy(token string) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: s.Address}) },
		Transport: authorized{s.transport, "Bearer " + token},
	})
}

// Failure is an answer that is not 2xx.
type Failure struct {
	Code int
	Body string
}

func (f *Failure) Error() string { return fmt.Sprintf("status %d: %s", f.Code, f.Body) }

// Do sends a request of the admin's and returns the body of the answer. An
// answer that is not 2xx is a [*Failure].
func (s *Server) Do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := s.Client(Admin).Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = &Failure{answer.StatusCode, strings.TrimSpace(string(data))}
	}
	return data, err
}

// Client returns a client that authenticates as a user, Admin or Limited.
func (s *Server) Client(user string) *http.Client {
	return &http.Client{Transport: authorized{s.transport, "Bearer " + s.Token(user)}}
}

// authorized adds a token to each request.
type authorized struct {
	http.RoundTripper
	header string
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", a.header)
	return a.RoundTripper.RoundTrip(r)
}
