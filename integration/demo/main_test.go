package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

func TestRun(t *testing.T) {
	child.ForTest(t, servers.ClickHouse) // or the test is skipped
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`x-trace-id: [0-9a-f]{32}\n`, `traceflake trace ID .* halves agree`,
		`3 spans in 2 services`, `\n   shop .*s\n   shop .*s\n   orders .*s\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	t.Log(out.String())
}
