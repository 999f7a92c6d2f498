package servers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// outcome records what happens to a test.
type outcome struct {
	testing.TB
	skipped, failed bool
}

func (o *outcome) Helper()      {}
func (o *outcome) Skip(...any)  { o.skipped = true }
func (o *outcome) Fatal(...any) { o.failed = true }

// A test without its engine is skipped, but never in CI.
func TestNotInstalled(t *testing.T) {
	t.Setenv("TRACEFLAKE_POSTGRES_DSN", "")
	t.Setenv("TRACEFLAKE_ENGINES", t.TempDir())
	_, err := Postgres(t.Context())
	if !errors.Is(err, child.ErrNotInstalled) || !strings.Contains(err.Error(), "make engines") {
		t.Fatalf("got %v, want ErrNotInstalled and what to run", err)
	}
	for _, c := range []struct {
		ci   string
		err  error
		want outcome
	}{
		{"", nil, outcome{}},
		{"", err, outcome{skipped: true}},
		{"", errors.New("does not start"), outcome{failed: true}},
		{"true", err, outcome{failed: true}},
	} {
		t.Setenv("CI", c.ci)
		var got outcome
		child.Started(&got, func(context.Context) (*PostgresServer, error) { return nil, c.err })
		if got != c.want {
			t.Errorf("CI=%q, error %v: %+v, want %+v", c.ci, c.err, got, c.want)
		}
	}
}
