package k8sstore

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
)

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantText(t *testing.T, what string, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %q does not say %q", what, err, text)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: error %q has a secret", what, err)
	}
}

func TestAccount(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := readAccount(dir)
	wantText(t, "outside of a cluster", err, "KUBERNETES_SERVICE_HOST", "kubectl proxy")
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err = readAccount(dir)
	wantText(t, "no account", err, "token", "ca.crt", "namespace", "automountServiceAccountToken")
	write(t, filepath.Join(dir, "token"), "hunter2\n")
	write(t, filepath.Join(dir, "ca.crt"), "a certificate\n")
	write(t, filepath.Join(dir, "namespace"), "\n")
	_, err = readAccount(dir)
	wantText(t, "an empty namespace", err, "namespace is empty")
	write(t, filepath.Join(dir, "namespace"), "shop")
	a, err := readAccount(dir)
	want := account{server: "https://[fd00::1]:443", namespace: "shop", token: "hunter2", ca: "a certificate"}
	if err != nil || a != want {
		t.Errorf("got %+v, %v, want %+v", a, err, want)
	}
	_, err = newPod(dir)
	wantText(t, "half a certificate", err, "ca.crt has no certificate")
}

// inPod makes this process a pod of the cluster of an API server.
func inPod(t *testing.T, server *httptest.Server) (dir string) {
	t.Helper()
	dir = t.TempDir()
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	write(t, filepath.Join(dir, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, filepath.Join(dir, "namespace"), "shop")
	write(t, filepath.Join(dir, "token"), "one")
	return dir
}

func TestAddress(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
	defer server.Close()
	for _, c := range []struct{ url, namespace, name string }{
		{"k8s://", "default", DefaultName},
		{"k8s:///orders", "default", "orders"},
		{"k8s://other/orders/", "other", "orders"},
		{"k8s://other", "other", DefaultName},
	} {
		s, err := openURL(c.url + "?server=" + server.URL)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		_, err = s.List(t.Context())
		wantText(t, c.url, err, "no API server of Kubernetes")
		if want := "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases/" + c.name + ".config"; asked != want {
			t.Errorf("%s: asks for %s, want %s", c.url, asked, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for url, want := range map[string]string{
		"k8s:":                                "k8s://namespace/name",
		"k8s:shop/orders":                     "k8s://namespace/name",
		"k8s://user:hunter2@shop/":            "k8s://namespace/name",
		"k8s://shop:6443/":                    "k8s://namespace/name",
		"k8s://shop/#orders":                  "k8s://namespace/name",
		"k8s://shop/a?kubeconfig=x":           `"kubeconfig"`,
		"k8s://shop/a":                        "this is no pod",
		"k8s://shop/a?server=host:8001":       "https://host:port",
		"k8s://shop/a?server=etcd://host":     "https://host:port",
		"k8s://Shop/a?server=http://a":        `"Shop"`,
		"k8s://shop/a.b?server=http://a":      `"a.b"`,
		"k8s://shop/a/b?server=http://a":      `"a/b"`,
		"k8s://a/b?server=http://u:hunter2@h": "https://host:port",
	} {
		_, err := openURL(url)
		wantText(t, url, err, "k8sstore: ", want)
		if strings.Contains(url, "?server=") && !errors.Is(err, lease.ErrInvalidRequest) { // as of New
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := New(nil, "https://host:6443", "shop"); !errors.Is(err, lease.ErrInvalidRequest) {
		t.Errorf("no client: %v", err)
	}
}
