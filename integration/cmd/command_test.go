// Package cmd runs the command line against real servers.
package cmd_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// PostgreSQL accepts the output of `traceflake postgres`, which makes psql stop at an error.
func TestPostgres(t *testing.T) {
	server := child.ForTest(t, servers.Postgres)
	conn := server.Connect(t)
	script, err := exec.CommandContext(t.Context(), child.Build(t, child.Traceflake), "postgres").
		Output()
	if err != nil {
		t.Fatal(err)
	}
	statements, ok := strings.CutPrefix(string(script), "\\set ON_ERROR_STOP on\n")
	if !ok {
		t.Errorf("psql would go on after an error:\n%s", script)
	}
	if _, err = conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
	var at time.Time
	err = conn.QueryRow(t.Context(),
		"SELECT trace_id_time('0eb4dcf8440000000000000000000001')").Scan(&at)
	if err != nil || at.Year() != 2024 {
		t.Errorf("%s, %v", at, err)
	}
}
