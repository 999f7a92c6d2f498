package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/lease"
)

// An address without a port gets the default port.
func TestDefaultPort(t *testing.T) {
	for dsn, want := range map[string]string{
		"clickhouse://host/otel": "host:9000", "clickhouse://[::1]/otel": "[::1]:9000",
		"clickhouse://host/otel?secure=true": "host:9440",
		"http://host/otel":                   "host:8123",
		"https://host/otel":                  "host:8443",
		"https://host/otel?read_timeout=1h":  "host:8443",
		"clickhouse://host:1/otel":           "host:1",
	} {
		o, err := parseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := withPort(o.Addr[0], o); got != want {
			t.Errorf("%s is %s, want %s", dsn, got, want)
		}
	}
}

// A table is to be created if it is missing, not if the server is too old or hangs.
func TestUnfit(t *testing.T) {
	for fix, err := range map[string]error{
		"otherwise follow the message": errors.New("clickhouse: the server is too old: upgrade it"),
		"which does not answer":        fmt.Errorf("no response: %w", context.DeadlineExceeded),
		"create the database":          &chgo.Exception{Code: 81},
	} {
		if got := lease.Fix(diagnose(unfit(err))); !strings.Contains(got, fix) {
			t.Errorf("%v: fix %q, want %q", err, got, fix)
		}
	}
}

// An address that would be read as another one than was meant is refused, and so is an invalid one;
// the fix is that of the mistake.
func TestMistakenAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"clickhouse://u:$(PASSWORD)@127.0.0.1:1/otel":  "a placeholder was not replaced",
		"clickhouse://u:hunter2@127.0.0.1:1/otel # it": "remove the comment",
		"clickhouse://u:hunter2%%40b@127.0.0.1:1/otel": "% in the password as %25",
		"clickhouse://u:hun/ter2@127.0.0.1:1/otel":     "as %XX",
		"'clickhouse://u:hunter2@127.0.0.1:1/otel'":    "remove the quotes",
		"localhost:9000": "want clickhouse://",
	} {
		r := command(t, "", "doctor", "--dsn="+address)
		r.want(t, 1, want, "")
		if strings.Contains(r.out, "hunter2") {
			t.Errorf("%s: %s", address, r.out)
		}
	}
}
