package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Each row of the table is the advice for some error, and no advice loses anything.
func TestAdvice(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	seen := make(map[string]bool)
	for _, c := range []struct {
		err  error
		want string
	}{
		{lease.ErrNoStore, "never created: traceflake lease create"},
		{lease.ErrRaising, "repeat traceflake lease raise"},
		{lease.ErrMoved, "traceflake lease raise --moved-here"},
		{lease.ErrReplaced, "current store's secret file"},
		{lease.ErrWrongSecret, "traceflake lease secret add"},
		{lease.ErrClockAhead, "set this machine's clock"},
		{randflake.ErrInvalidKeyring, "correct that line"},
		{driver.ErrEdited, "restore the object from a backup"},
		{lease.ErrSchemaVersion, "install that version"},
		{lease.ErrInvalidRequest, "correct TRACEFLAKE_STORE"},
		{syscall.EROFS, "read-only"},
		{errors.New("the server is read-only, a standby perhaps"), "connect to the primary"},
		{syscall.ENOSPC, "free some space"},
		{syscall.EISDIR, "correct the path"},
		{fs.ErrPermission, "give the services' user the right to read and write there"},
		{fs.ErrNotExist, "create the missing file"},
		{errors.New("tls: first record does not look like a TLS handshake"), "one side uses TLS"},
		{errors.New("x509: certificate signed by unknown authority"), "not trusted"},
		{refused, "nothing listens at this address"},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, "correct the host name"},
		{fmt.Errorf("%w (transport: connection refused)", context.DeadlineExceeded),
			"nothing listens at this address"},
		{fmt.Errorf("%w (transport: no such host)", context.DeadlineExceeded),
			"correct the host name"},
		{&chgo.Exception{Code: 516}, "user and password"},
		{&chgo.Exception{Code: 497}, "grant"},
		{&chgo.Exception{Code: 81}, "create the database"},
		{&chgo.Exception{Code: 60}, "traceflake clickhouse create"},
		{&chgo.Exception{Code: 159}, "overloaded"},
		{errors.New("clickhouse: otel_traces is the exporter's"), "adopt prepare"},
		{errors.New("clickhouse: there is no table otel_traces"), "traceflake clickhouse create"},
		{errors.New("the file is locked by another process"), "wait"},
		{lease.ErrMisconfigured, "do what the error says"},
		{context.DeadlineExceeded, "the server does not answer"},
		{errors.New("something else"), "change nothing and read"},
	} {
		got := advise(fmt.Errorf("package: call: %w", c.err))
		if !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		seen[got] = true
	}
	loses := regexp.MustCompile(`\b(move|delete|remove|drop|truncate)\b`)
	for _, a := range advices {
		if !seen[a.fix] {
			t.Errorf("no error of the test has the advice %q", a.fix)
		}
		if loses.MatchString(a.fix) {
			t.Errorf("%q may lose something", a.fix)
		}
	}
}

// A server that accepts connections and never answers delays each check for at most 5 s, the
// command for as long as one check, and decoding with a secret for a second.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a",
		"AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	at, secret := silent.Addr().String(), write(t, "secret", secretA)
	postgres, etcd := "--store=postgres://u:p@"+at+"/db", "--store=etcd://"+at
	const span = "c83100459a1b574c" // under secretA
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"doctor", postgres}, {"doctor", etcd}, {"doctor", "--store=etcd://u:p@" + at},
		{"doctor", "--store=k8s://a/b?server=http://" + at},
		{"doctor", "--store=s3://bucket/p?region=r&endpoint=http://" + at},
		{"doctor", "--dsn=http://" + at + "/otel"},
		{"doctor", "--dsn=clickhouse://" + at + "/otel"},
		{"inspect", postgres, span}, {"inspect", etcd, span},
	} {
		args = append(args, "--secret-file", secret)
		code, most, want := 1, checkTimeout, "the server does not answer"
		if args[0] == "inspect" {
			code, most, want = 0, answerTimeout, "leases are not shown: "
		} else if strings.HasPrefix(args[1], "--dsn") {
			args = args[:2] // a secret needs a store
		}
		all.Go(func() {
			began := time.Now()
			r := command(t, "", args...)
			if took := time.Since(began); r.code != code || took > most+3*time.Second ||
				!strings.Contains(r.out+r.errOut, want) {
				t.Errorf("%q: code %d after %s\n%s%s", args, r.code, took, r.out, r.errOut)
			}
		})
	}
	all.Wait()
	// The error has the cause, although a client retries until the end.
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{etcd, postgres} {
		command(t, "", "doctor", store, "--secret-file", secret).
			want(t, 1, "connection refused", "")
	}
}

// One side uses TLS and the other does not, a certificate is not trusted, and ClickHouse refuses:
// the errors of the real clients have the advice that fits.
func TestAdviceOnServers(t *testing.T) {
	refuse := func(code int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "Code: %d. DB::Exception: refused. (NAME) (version 26.3)\n", code)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain, tls := refuse(0), secure.Listener.Addr().String()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a",
		"AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	secret := write(t, "secret", secretA)
	var all sync.WaitGroup
	const mixed, untrusted = "one side uses TLS", "the certificate is not trusted"
	for _, c := range []struct{ address, want string }{
		{"--store=etcds://" + plain, mixed},
		{"--store=etcd://" + tls, mixed},
		{"--store=etcds://" + tls, untrusted},
		{"--store=s3://bucket?region=r&endpoint=https://" + plain, mixed},
		{"--store=s3://bucket?region=r&endpoint=https://" + tls, untrusted},
		{"--store=k8s://a/b?server=https://" + plain, mixed},
		{"--store=k8s://a/b?server=https://" + tls, untrusted},
		{"--dsn=https://" + plain + "/otel?secure=true", mixed},
		{"--dsn=https://" + tls + "/otel?secure=true", untrusted},
		{"--dsn=clickhouse://" + tls + "/otel?secure=true", untrusted},
		{"--dsn=http://" + refuse(516) + "/otel", "correct user and password"},
		{"--dsn=http://" + refuse(497) + "/otel", "grant the user"},
		{"--dsn=http://" + refuse(81) + "/otel", "create the database"},
	} {
		args := []string{"doctor", c.address}
		if strings.HasPrefix(c.address, "--store") {
			args = append(args, "--secret-file", secret)
		}
		all.Go(func() { command(t, "", args...).want(t, 1, c.want, "") })
	}
	all.Wait()
}
