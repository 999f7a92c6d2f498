package k8sstore

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

var wantError = calls.WantError("", "hunter2")

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The token is read for each request, the CA's certificate for each connection.
func TestAccount(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind": "Status", "message": "Unauthorized", "code": 401}`)
			return
		}
		_, _ = io.WriteString(w, aLease)
	}))
	defer server.Close()
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	dir := t.TempDir()
	token, ca, namespace := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt"),
		filepath.Join(dir, "namespace")
	wrong := func(what string, texts ...string) {
		t.Helper()
		_, err := inPod(dir)
		wantError(t, what, err, nil, texts...)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	wrong("outside of a cluster", "KUBERNETES_SERVICE_HOST", "kubectl proxy")
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	wrong("no account", "token", "ca.crt", "namespace", "automountServiceAccountToken")
	write(t, token, "hunter\n")
	write(t, ca, "a certificate\n")
	write(t, namespace, "\n")
	wrong("an empty namespace", "namespace is empty")
	write(t, namespace, "shop\n")
	wrong("half a certificate", "ca.crt has no certificate")
	_, before := network.NewCertificate(t)
	write(t, ca, before)

	o, err := inPod(dir)
	if err != nil || o.namespace != "shop" {
		t.Fatalf("%+v, %v", o, err)
	}
	o.name = "orders"
	_, err = o.Read(t.Context(), "page-0001")
	wantError(t, "another CA", err, nil, "certificate signed by unknown authority")
	write(t, ca,
		string(pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	_, err = o.Read(t.Context(), "page-0001")
	wantError(t, "another token", err, lease.ErrMisconfigured, "credentials", "401")
	write(t, token, "hunter2\n")
	if _, err := o.Read(t.Context(), "page-0001"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	_, err = o.Read(t.Context(), "page-0001")
	wantError(t, "no token", err, nil, token)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestURL(t *testing.T) {
	asked := ""
	server := httptest.NewServer(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path }))
	defer server.Close()
	for _, c := range []struct{ url, namespace, name string }{
		{"k8s://", "default", defaultName},
		{"k8s:///orders", "default", "orders"},
		{"k8s://other/orders/", "other", "orders"},
		{"k8s://other", "other", defaultName},
	} {
		s, err := stores.Open(c.url + "?server=" + server.URL)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		_, err = s.List(t.Context())
		wantError(t, c.url, err, nil, "not a response of a Kubernetes API server")
		if want := "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases/" + c.name +
			".config"; asked != want {
			t.Errorf("%s: asks for %s, want %s", c.url, asked, want)
		}
		if err := s.Close(); err != nil {
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
		"k8s://shop/a":                        "this is not a pod",
		"k8s://shop/a?server=host:8001":       "https://host:port",
		"k8s://shop/a?server=etcd://host":     "https://host:port",
		"k8s://Shop/a?server=http://a":        `"Shop"`,
		"k8s://shop/a.b?server=http://a":      `"a.b"`,
		"k8s://shop/a/b?server=http://a":      `"a/b"`,
		"k8s://a/b?server=http://u:hunter2@h": "https://host:port",
	} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest, "k8sstore: ", want)
	}
	_, err := New(nil, "https://host:6443", "shop", "")
	wantError(t, "no client", err, lease.ErrInvalidRequest)
}
