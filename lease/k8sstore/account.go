package k8sstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// accountDir is where the kubelet mounts the service account of a pod.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// inPod returns the objects in a pod's namespace, without the name of their store. The token is
// read for each request, the CA's certificates for each connection: the kubelet replaces both.
func inPod(dir string) (*objects, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, &lease.Error{Err: errors.New("this is not a pod, because " +
			"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"),
			Fix: "run `kubectl proxy` and add ?server=http://127.0.0.1:8001 to the URL"}
	}
	_, noToken := read(dir, "token")
	_, noCA := readRoots(dir)
	namespace, noNamespace := read(dir, "namespace")
	if err := cmp.Or(noToken, noCA, noNamespace); err != nil {
		return nil, err
	}
	return &objects{client: newClient(dir), server: "https://" + net.JoinHostPort(host, port),
		account: dir, namespace: namespace}, nil
}

// read returns the content of a file of the service account.
func read(dir, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	text := strings.TrimSpace(string(b))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty", filepath.Join(dir, name))
	}
	if err != nil {
		err = &lease.Error{Err: fmt.Errorf("the pod's service account: %w", err),
			Fix: "mount the service account: automountServiceAccountToken is false in it or in " +
				"the pod, or this is no pod"}
	}
	return text, err
}

func readRoots(dir string) (*x509.CertPool, error) {
	ca, err := read(dir, "ca.crt")
	roots := x509.NewCertPool()
	if err == nil && !roots.AppendCertsFromPEM([]byte(ca)) {
		err = fmt.Errorf("the pod's service account: %s has no certificate in PEM form",
			filepath.Join(dir, "ca.crt"))
	}
	return roots, err
}

// newClient returns a client of HTTP/1.1. If dir is not "", it reads the CA's certificates there
// for each connection. A process that only renews its lease needs one connection, which is closed
// between two renewals.
func newClient(dir string) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 32, // which a search uses
		IdleConnTimeout:     90 * time.Second,
	}
	if dir != "" {
		roots, _ := readRoots(dir)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots} // through a proxy
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn,
			error) {
			roots, err := readRoots(dir)
			if err != nil {
				return nil, err
			}
			secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{RootCAs: roots}}
			return secure.DialContext(ctx, network, address)
		}
	}
	return &http.Client{Transport: transport}
}
