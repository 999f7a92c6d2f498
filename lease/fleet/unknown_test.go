package fleet

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// Kubernetes sets some variables for a Service.
func TestUnknown(t *testing.T) {
	got := unknown([]string{
		"TRACEFLAKE_=1", "TRACEFLAKE_SECRET=x", "TRACEFLAKE_CLICKHOUSE_DSN=x",
		"TRACEFLAKE_SERVICE_HOST=x", "TRACEFLAKE_PORT_80_TCP_ADDR=x",
		"TRACEFLAKE_WEB_SERVICE_PORT=x", "TRACEFLAKE_WEB_PORT=x", "TRACEFLAKESTORE=x",
		"OTEL_TRACEFLAKE_STORE_SECRET=x", "TRACEFLAKE_COLOR=x",
	})
	want := []string{"TRACEFLAKE_", "TRACEFLAKE_SECRET", "TRACEFLAKE_COLOR"}
	if !slices.Equal(got, want) {
		t.Errorf("unknown are %q, want %q", got, want)
	}
}

// docs/configuration.md lists every variable that is known, and no other.
func TestPageListsEveryVariable(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var page []string
	row := regexp.MustCompile("(?m)^\\| `(TRACEFLAKE_[A-Z_]+)`")
	for _, m := range row.FindAllSubmatch(text, -1) {
		page = append(page, string(m[1]))
	}
	slices.Sort(page)
	if !slices.Equal(page, known) {
		t.Errorf("the page lists\n%q\nthe code knows\n%q", page, known)
	}
}
