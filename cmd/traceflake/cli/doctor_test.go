package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A server that accepts connections and never answers delays each check for at most 5 s, the
// doctor for as long as one check, and other commands for 10 s. So does a disk.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	setAWSKey(t)
	at, secret := silent.Addr().String(), write(t, "secret", secretA)
	postgres, etcd := "--store=postgres://u:p@"+at+"/db", "--store=etcd://"+at
	var all sync.WaitGroup
	for _, args := range [][]string{
		{"doctor", postgres}, {"doctor", etcd}, {"doctor", "--store=etcd://u:p@" + at},
		{"doctor", "--store=k8s://a/b?server=http://" + at},
		{"doctor", "--store=s3://bucket/p?region=r&endpoint=http://" + at},
		{"doctor", "--dsn=http://" + at + "/otel"},
		{"doctor", "--dsn=clickhouse://" + at + "/otel"},
		{"lease", "create", etcd, "--secret-file", secret},
		{"inspect", "--store=test:hung", "x", "--secret-file", secret},
	} {
		code, most, want := 1, checkTimeout, "start the server"
		switch {
		case args[0] != "doctor":
			code, most, want = 2, describeTimeout, "deadline exceeded"
		case strings.HasPrefix(args[1], "--store"):
			args = append(args, "--secret-file", secret)
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

// closing starts a server that closes each connection when something arrives, as etcd without TLS
// does when a handshake arrives. It returns the address.
func closing(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// A server that replays each recorded answer of ClickHouse's, or of a proxy before it: the doctor
// has the fix of the answer's row, and says what was answered once.
func TestClickHouseAnswers(t *testing.T) {
	var all sync.WaitGroup
	for _, row := range answers {
		for _, message := range row.Recorded {
			if found := answers.Find(row.Code, message); found.Fix != row.Fix {
				t.Errorf("%s %q: found %q, not %q", row.Code, message, found.Fix, row.Fix)
			}
			if row.Code == "connect" {
				continue // TestDoctorOnFakes has handshakes
			}
			server := httptest.NewServer(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					if status, page := strings.CutPrefix(row.Code, "http"); page {
						code, _ := strconv.Atoi(status)
						w.WriteHeader(code)
						fmt.Fprint(w, message, strings.Repeat("<p>page</p>", 100))
						return
					}
					w.Header().Set("X-ClickHouse-Exception-Code", row.Code)
					w.WriteHeader(http.StatusInternalServerError)
					fmt.Fprintf(w, "Code: %s. DB::Exception: %s (NAME)\n", row.Code, message)
				}))
			t.Cleanup(server.Close)
			all.Go(func() {
				r := command(t, "", "doctor", "--dsn=http://"+server.Listener.Addr().String())
				r.want(t, 1, row.Fix, "")
				if strings.Contains(r.out, "hello") || len(r.out) > 1200 {
					t.Errorf("%s %q: %s", row.Code, message, r.out)
				}
			})
		}
		if len(row.Recorded) == 0 || row.Fix == "" {
			t.Errorf("no message or fix of %+v", row)
		}
	}
	all.Wait()
}

// On fakes of servers, since those of the tests have neither TLS nor ClickHouse's users: one side
// uses TLS and the other does not, a certificate is not trusted, ClickHouse refuses, another kind
// of server listens. The errors of the real clients have the advice that fits.
func TestDoctorOnFakes(t *testing.T) {
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
	mutual := httptest.NewUnstartedServer(http.NotFoundHandler())
	mutual.Config.ErrorLog = secure.Config.ErrorLog
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	t.Cleanup(mutual.Close)
	mutualTLS := mutual.Listener.Addr().String() + "/otel?secure=true&skip_verify=true"
	notFound := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(notFound.Close)
	plain, encrypted := refuse(0), secure.Listener.Addr().String()
	notClickHouse := notFound.Listener.Addr().String()
	setAWSKey(t)
	secret := write(t, "secret", secretA)
	var all sync.WaitGroup
	const mixed, untrusted = "use TLS on both sides or on neither", "set the authority"
	const other = "another kind of server listens there, or one that requires TLS"
	const port = "another kind of server may listen there"
	for _, c := range []struct{ address, want string }{
		{"--store=etcd://no.such.invalid", "the DNS of this machine"},
		{"--store=etcds://" + plain, mixed},
		{"--store=etcd://" + encrypted, other},
		{"--store=etcd://" + plain, other},
		{"--store=etcds://" + encrypted, untrusted},
		{"--store=etcds://" + closing(t), mixed},
		{"--store=s3://bucket?region=r&endpoint=https://" + plain, mixed},
		{"--store=s3://bucket?region=r&endpoint=https://" + encrypted, untrusted},
		{"--store=k8s://a/b?server=https://" + plain, mixed},
		{"--store=k8s://a/b?server=https://" + encrypted, untrusted},
		{"--dsn=https://" + plain + "/otel?secure=true", mixed},
		{"--dsn=http://" + encrypted + "/otel", port},
		{"--dsn=clickhouse://" + encrypted + "/otel", port},
		{"--dsn=clickhouse://" + plain + "/otel", port},
		{"--dsn=http://" + notClickHouse + "/otel", port},
		{"--store=postgres://" + encrypted + "/db?sslmode=disable", other},
		{"--store=s3://bucket?region=r&endpoint=http://" + encrypted, other},
		{"--store=s3://bucket?region=r&endpoint=http://" + notClickHouse, other},
		{"--store=k8s://a/b?server=http://" + encrypted, "one that requires https"},
		{"--dsn=https://" + encrypted + "/otel?secure=true", "SSL_CERT_FILE names"},
		{"--dsn=clickhouse://" + encrypted + "/otel?secure=true", "SSL_CERT_FILE names"},
		{"--dsn=https://" + mutualTLS, "accept clients without a certificate"},
		{"--dsn=clickhouse://" + mutualTLS, "accept clients without a certificate"},
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
