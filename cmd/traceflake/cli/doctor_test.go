package cli

import (
	"context"
	"crypto/tls"
	"errors"
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
	"testing/synctest"
	"time"
)

// A check that cannot be ended, as on a disk that does not answer, ends for the doctor.
func TestHangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		defer close(answer)
		began := time.Now()
		_, err := within(t.Context(), func(context.Context) (int, error) {
			<-answer
			return 0, nil
		})
		if took := time.Since(began); took < checkTimeout || took > checkTimeout+time.Second ||
			!strings.Contains(fmt.Sprint(err), "no response within 5s") {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A server that accepts connections and never answers delays each check of the doctor for at most
// 5 s, and other commands for 10 s; so does a disk. An interruption ends a command before, and is
// the reason that it prints.
func TestSilentServers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	setAWSKey(t)
	fill := strings.NewReplacer("AT", silent.Addr().String(), "--store", "--secret-file "+
		write(t, "secret", secretA)+" --store")
	const answers, interrupted = "start the server", "interrupted by the test"
	const clickhouse = "--dsn=clickhouse://AT/otel"
	var all sync.WaitGroup
	for _, c := range []struct{ args, want string }{
		{"doctor --store=postgres://u:p@AT/db", answers},
		{"doctor --store=etcd://AT", answers},
		{"doctor --store=k8s://a/b?server=http://AT", answers},
		{"doctor --store=s3://bucket/p?region=r&endpoint=http://AT", answers},
		{"doctor --dsn=http://AT/otel", answers},
		{"doctor " + clickhouse, answers},
		{"lease create --store=etcd://AT", "deadline exceeded"},
		{"inspect --store=test:hung x", "deadline exceeded"},
		{"doctor " + clickhouse, interrupted},
		{"doctor --dsn=http://AT/otel", interrupted},
		{"doctor --store=etcd://AT", interrupted},
		{"clickhouse create " + clickhouse, interrupted},
		{"trace " + random + " " + clickhouse, interrupted},
		{"lease create --store=postgres://u:p@AT/db", interrupted},
	} {
		all.Go(func() {
			limit, code := time.Hour, 2
			switch c.want {
			case interrupted:
				limit = 500 * time.Millisecond
			case answers:
				code = 1
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New(interrupted))
			defer cancel()
			args := strings.Fields(fill.Replace(c.args))
			r := commandIn(ctx, t, "", args...)
			if r.code != code || !strings.Contains(r.out+r.errOut, c.want) ||
				c.want == interrupted && strings.Contains(r.out, "WRONG") {
				t.Errorf("%q: code %d\n%s%s", args, r.code, r.out, r.errOut)
			}
		})
	}
	all.Wait()
	// The error has the cause, although a client retries until the end.
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"doctor --store=etcd://AT", "doctor --store=postgres://u:p@AT"} {
		command(t, "", strings.Fields(fill.Replace(args))...).want(t, 1, "connection refused", "")
	}
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

// On fakes of servers, since those of the tests have no TLS: one side uses TLS and the other does
// not, a certificate is not trusted, another kind of server listens. The errors of the real clients
// have the advice that fits.
func TestDoctorOnFakes(t *testing.T) {
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
	notFound := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(notFound.Close)
	closes := httptest.NewUnstartedServer(http.NotFoundHandler())
	closes.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateActive { // as etcd without TLS does when a handshake arrives
			_ = c.Close()
		}
	}
	closes.Start()
	t.Cleanup(closes.Close)
	setAWSKey(t)
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	fill := strings.NewReplacer("PLAIN", at(notFound), "TLS", at(secure), "CLOSES", at(closes),
		"MUTUAL", at(mutual)+"/otel?secure=true&skip_verify=true",
		"--store", "--secret-file "+write(t, "secret", secretA)+" --store")
	var all sync.WaitGroup
	const mixed, untrusted = "use TLS on both sides or on neither", "set the authority"
	const other = "another kind of server listens there, or one that requires TLS"
	const port = "another kind of server may listen there"
	for _, c := range []struct{ address, want string }{
		{"--store=etcd://no.such.invalid", "the DNS of this machine"},
		{"--store=etcds://PLAIN", mixed},
		{"--store=etcd://TLS", other},
		{"--store=etcd://PLAIN", other},
		{"--store=etcds://TLS", untrusted},
		{"--store=etcds://CLOSES", mixed},
		{"--store=s3://bucket?region=r&endpoint=https://PLAIN", mixed},
		{"--store=s3://bucket?region=r&endpoint=https://TLS", untrusted},
		{"--store=k8s://a/b?server=https://PLAIN", mixed},
		{"--store=k8s://a/b?server=https://TLS", untrusted},
		{"--dsn=https://PLAIN/otel?secure=true", mixed},
		{"--dsn=http://TLS/otel", port},
		{"--dsn=clickhouse://TLS/otel", port},
		{"--dsn=clickhouse://PLAIN/otel", port},
		{"--dsn=http://PLAIN/otel", port},
		{"--store=postgres://TLS/db?sslmode=disable", other},
		{"--store=s3://bucket?region=r&endpoint=http://TLS", other},
		{"--store=s3://bucket?region=r&endpoint=http://PLAIN", other},
		{"--store=k8s://a/b?server=http://TLS", "one that requires https"},
		{"--dsn=https://TLS/otel?secure=true", "SSL_CERT_FILE names"},
		{"--dsn=clickhouse://TLS/otel?secure=true", "SSL_CERT_FILE names"},
		{"--dsn=https://MUTUAL", "accept clients without a certificate"},
		{"--dsn=clickhouse://MUTUAL", "accept clients without a certificate"},
	} {
		args := strings.Fields(fill.Replace("doctor " + c.address))
		all.Go(func() { command(t, "", args...).want(t, 1, c.want, "") })
	}
	all.Wait()
}
