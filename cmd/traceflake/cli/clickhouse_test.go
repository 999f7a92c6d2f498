package cli

import (
	"testing"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// An address without a port gets the default port.
func TestDefaultPort(t *testing.T) {
	for dsn, want := range map[string]string{
		"clickhouse://host/otel": "host:9000", "clickhouse://[::1]/otel": "[::1]:9000",
		"clickhouse://host/otel?secure=true": "host:9440",
		"http://host/otel":                   "host:8123",
		"https://host/otel?secure=true":      "host:8443", "clickhouse://host:1/otel": "host:1",
	} {
		o, err := chgo.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := withPort(o.Addr[0], o); got != want {
			t.Errorf("%s is %s, want %s", dsn, got, want)
		}
	}
}
