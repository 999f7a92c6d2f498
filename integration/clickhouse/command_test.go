package clickhouse_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestCommand runs `traceflake clickhouse` as an operator does.
func TestCommand(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", e.DSN())
	run := func(code int, args string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"clickhouse"}, strings.Fields(args)...)...)
		out, _ := cmd.CombinedOutput() // its exit code is checked
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("%q: code %d, want %d\n%s", args, got, code, out)
		}
		return string(out)
	}
	e.adoptable("clickstack.sql")
	e.insert("spans", few())
	fill := strings.NewReplacer("{db}", e.Database(), "{ttl}", moves)
	for _, c := range strings.Split(fill.Replace(read("testdata/command.txt")), "\n\n") {
		args, want, _ := strings.Cut(strings.TrimPrefix(c, "$ "), "\n")
		args, fails := strings.CutSuffix(args, " # fails")
		out := run(map[bool]int{true: 2}[fails], args)
		if out = varies.ReplaceAllString(out, "N"); !strings.Contains(out, want) {
			t.Errorf("%s: %s\nlacks %s", args, out, want)
		}
	}

	// The scripts do the same by hand.
	if err := e.adopts("end", e.db); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"prepare", "swap", "undo", "swap"} {
		before := e.snapshot()
		script := run(0, "adopt "+operation+" --table spans --dry-run")
		if after := e.snapshot(); after != before {
			t.Fatalf("a dry run changed %s to %s", before, after)
		}
		for statement := range strings.SplitSeq(comments.ReplaceAllString(script, ""), ";\n") {
			if strings.TrimSpace(statement) != "" {
				e.exec(statement)
			}
		}
	}
	e.is("0", "SELECT count() FROM spans")
	e.creates(clickhouse.Schema{Table: "spans"})
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", "") // a dry run of create needs no server
	if out := run(0, "create --projection all --dry-run"); !strings.Contains(out,
		"PROJECTION by_service") {
		t.Errorf("the dry run omits the projection: %s", out)
	}
}

// TestTLS: the command reaches a server by HTTPS, and one that speaks the native protocol over TLS,
// whose certificates are by a private CA, which SSL_CERT_FILE names. Without it, it says so, and never
// sends the password.
func TestTLS(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	e := newEngine(t)
	e.creates(clickhouse.Schema{})
	at, err := url.Parse(e.DSN())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at.Host})
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		next.ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end
	web.StartTLS()
	defer web.Close()
	native, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = native.Close() }()
	hellos := make(chan byte, 16) // the first byte that a client sends over TLS
	go func() {
		for conn, err := native.Accept(); err == nil; conn, err = native.Accept() {
			first := []byte{255}
			_, _ = conn.Read(first) // its error leaves 255
			hellos <- first[0]
			_ = conn.Close()
		}
	}()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func(dsn, file, want string) {
		t.Helper()
		cmd := exec.Command(path, "clickhouse", "status", "--dsn", dsn)
		cmd.Env = []string{"SSL_CERT_FILE=" + file}
		out, _ := cmd.CombinedOutput() // its text is checked
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: %s\nlacks %s", dsn, out, want)
		}
	}
	at.Scheme, at.Host = "https", web.Listener.Addr().String()
	status(at.String(), "", "SSL_CERT_FILE")
	if asked.Load() > 0 {
		t.Error("a server that is not trusted was asked")
	}
	status(at.String(), authority, "ok     table ")
	status(at.String()+"?read_timeout=1h", authority, "ok     table ")
	at.Scheme, at.Host, at.RawQuery = "clickhouse", native.Addr().String(), "secure=true"
	status(at.String(), "", "SSL_CERT_FILE")
	if hello := <-hellos; hello != 255 {
		t.Errorf("a server that is not trusted got %d", hello)
	}
	status(at.String(), authority, "connect")
	const clientHello = 0 // of ClickHouse's native protocol
	if hello := <-hellos; hello != clientHello {
		t.Errorf("the server got %d, want a hello", hello)
	}
}

// varies matches the parts that differ between runs.
var varies = regexp.MustCompile(`\d+\.\d (MiB|days).*`)

var comments = regexp.MustCompile(`(?m)^--.*\n`)
