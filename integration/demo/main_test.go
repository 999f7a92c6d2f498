package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

func TestRun(t *testing.T) {
	child.ForTest(t, servers.ClickHouse) // or the test is skipped
	var out strings.Builder
	if err := run(t.Context(), &out, 64, 400_000); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`all 192 spans of 64 traces; none was lost`,
		`a trace from a client without headers, by its ID:\n\n` +
			`trace [0-9a-f]{32}\n  3 spans in 2 services`,
		`\n   shop .*ms\n   shop .*ms\n   orders .*s\n\nRead`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	var rows []int
	read := regexp.MustCompile(` (\d+) rows, +\d+ kB`)
	for _, m := range read.FindAllStringSubmatch(out.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		rows = append(rows, n)
	}
	// Of both tables, fresh and merged.
	if len(rows) != 4 || rows[0] > rows[1] || 4*rows[2] > rows[3] || rows[2] < spansOfRequest {
		t.Errorf("%d rows read, want a quarter of the exporter's when merged:\n%s", rows, &out)
	}
}

// The demo fails if spans do not arrive.
func TestLostSpans(t *testing.T) {
	child.ForTest(t, servers.ClickHouse)
	t.Setenv("TRACEFLAKE_STORE", "")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	var out strings.Builder
	if err := run(t.Context(), &out, 3, 8); err == nil || !strings.Contains(err.Error(), "stored") {
		t.Errorf("got %v, want the trace of which no span is stored\n%s", err, &out)
	}
}
