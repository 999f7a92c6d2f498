package k8sstore

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
)

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
	address := server.Listener.Addr().(*net.TCPAddr)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", address.IP.String())
	t.Setenv("KUBERNETES_SERVICE_PORT", fmt.Sprint(address.Port))
	_, err := inPod(dir)
	wantError(t, "no account", err, nil, "token")
	if !strings.Contains(lease.Fix(err), "automountServiceAccountToken") {
		t.Errorf("no account: fix %q", lease.Fix(err))
	}
	write("token", "hunter\n")
	write("ca.crt", "a certificate\n")
	write("namespace", "\n")
	_, err = inPod(dir)
	wantError(t, "bad files", err, nil, "ca.crt has no certificate")
	_, before := network.NewCertificate(t)
	write("ca.crt", before)
	_, err = inPod(dir)
	wantError(t, "no namespace", err, nil, "namespace is empty")
	write("namespace", "shop\n")

	o, err := inPod(dir)
	if err != nil || o.namespace != "shop" {
		t.Fatalf("%+v, %v", o, err)
	}
	o.name = "orders"
	read := func() error {
		_, err := o.Read(t.Context(), "page-0001")
		return err
	}
	wantError(t, "another CA", read(), nil, "certificate signed by unknown authority")
	write("ca.crt", string(pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	wantError(t, "another token", read(), lease.ErrMisconfigured, "credentials", "401")
	write("token", "hunter2\n")
	if err := read(); err != nil {
		t.Error(err)
	}
	write("token", "")
	wantError(t, "no token", read(), nil, "token is empty")
}
