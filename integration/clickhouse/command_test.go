package clickhouse_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestTLS: the command reaches a server by HTTPS, and one that speaks the native protocol over TLS,
// whose certificates are by a private CA, which SSL_CERT_FILE names. A server that is not trusted
// gets nothing.
func TestTLS(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	e.creates(clickhouse.Schema{})
	at, err := url.Parse(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(
		&url.URL{Scheme: "http", Host: at.Host}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end
	web.StartTLS()
	defer web.Close()
	native, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = native.Close() }()
	got := make(chan int, 2) // bytes that a client sends over TLS
	go func() {
		for conn, err := native.Accept(); err == nil; conn, err = native.Accept() {
			n, _ := conn.Read(make([]byte, 1)) // an error is 0 bytes
			got <- n
			_ = conn.Close()
		}
	}()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	child.Write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: web.Certificate().Raw})))
	status := func(scheme, host, query, file, want string) {
		t.Helper()
		at.Scheme, at.Host, at.RawQuery = scheme, host, query
		out, _ := patiently(path, "SSL_CERT_FILE="+file, "clickhouse", "status", "--dsn",
			at.String())
		if !strings.Contains(out, want) { // the text is checked, not the exit code
			t.Errorf("%s: %s\nlacks %s", at, out, want)
		}
	}
	secure, nativeTLS := web.Listener.Addr().String(), native.Addr().String()
	status("https", secure, "", "", "SSL_CERT_FILE")
	status("https", secure, "read_timeout=1h", authority, "ok     table ")
	status("clickhouse", nativeTLS, "secure=true", "", "SSL_CERT_FILE")
	status("clickhouse", nativeTLS, "secure=true", authority, "connect")
	if untrusted, trusted := <-got, <-got; untrusted != 0 || trusted != 1 {
		t.Errorf("the native server got %d bytes, and %d once it was trusted", untrusted, trusted)
	}
}
