package main

import (
	"strings"
	"testing"
)

func TestClickHouseDryRun(t *testing.T) {
	r := command(t, "", "clickhouse", "create", "--dry-run", "--table", "spans", "--ttl", "720h")
	r.want(t, 0, "CREATE VIEW IF NOT EXISTS `spans_trace_id_ts`", "")
	if sql := command(t, "", "sql", "clickhouse", "--table", "spans", "--ttl", "720h"); sql.out != r.out {
		t.Error("sql clickhouse prints other statements")
	}
	if trace := command(t, "", "clickhouse", "create", "--dry-run", "--trace-first"); !strings.Contains(trace.out, "ORDER BY (toStartOfHour(Timestamp), TraceId, Timestamp)") {
		t.Error("--trace-first has another order")
	}
}

func TestClickHouseBadInput(t *testing.T) {
	const secret = "verysecret"
	for _, c := range []struct {
		message string
		args    []string
	}{
		{"did you mean create?", []string{"clickhouse", "craete"}},
		{"no address: set --dsn", []string{"clickhouse", "create"}},
		{"the address is invalid", []string{"clickhouse", "create", "--dsn", "clickhouse://u:" + secret + "@host:9x00/otel"}},
		{"the address is invalid", []string{"clickhouse", "migrate", "--dsn", "nonsense://u:" + secret + "@"}},
		{"connection refused", []string{"clickhouse", "migrate", "--dsn", "clickhouse://u:" + secret + "@127.0.0.1:1/otel"}},
		{"table \"a`b\"", []string{"clickhouse", "create", "--dry-run", "--table", "a`b"}},
		{"[overlay trace-first] were all set", []string{"clickhouse", "create", "--dry-run", "--trace-first", "--overlay"}},
	} {
		r := command(t, "", c.args...)
		if r.want(t, 2, "", c.message); strings.Contains(r.errOut, secret) {
			t.Errorf("%q shows the password: %s", c.args, r.errOut)
		}
	}
}
