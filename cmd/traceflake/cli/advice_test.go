package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// No cause in the table is hidden by an earlier row, and no advice loses anything.
func TestAdvice(t *testing.T) {
	loses := regexp.MustCompile(`\b(move|delete|remove|drop|truncate)\b`)
	for _, row := range advices {
		for _, cause := range row.about {
			var err error
			switch cause := cause.(type) {
			case error:
				err = cause
			case string:
				err = errors.New("library: " + cause)
			case code:
				err = &chgo.Exception{Code: int32(cause)}
			}
			if got := advise(fmt.Errorf("package: call: %w", err)); got != row.fix {
				t.Errorf("%v: %q, want %q", cause, got, row.fix)
			}
		}
		if loses.MatchString(row.fix) {
			t.Errorf("%q may lose something", row.fix)
		}
	}
	// A particular cause precedes a general one.
	for text, want := range map[string]string{
		"transport: connection refused": "nothing listens at this address",
		"transport: no such host":       "correct the host name",
		"transport: idle":               "the server does not answer",
	} {
		err := fmt.Errorf("%w (%s)", context.DeadlineExceeded, text)
		if got := advise(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if got := advise(errors.New("something else")); !strings.Contains(got, "change nothing") {
		t.Errorf("no known cause: %q", got)
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
	notFound := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(notFound.Close)
	plain, tls := refuse(0), secure.Listener.Addr().String()
	other := notFound.Listener.Addr().String()
	setAWSKey(t)
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
		{"--dsn=http://" + tls + "/otel", mixed},
		{"--dsn=clickhouse://" + tls + "/otel", "one that requires TLS"},
		{"--dsn=http://" + other + "/otel", "to that of ClickHouse's HTTP interface"},
		{"--store=postgres://" + tls + "/db?sslmode=disable", "one that requires TLS"},
		{"--store=k8s://a/b?server=http://" + tls, "one that requires https"},
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
