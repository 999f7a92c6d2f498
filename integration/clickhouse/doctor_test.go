package clickhouse_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// The doctor reports a missing table, an adoption that has stopped halfway, and a missing lookup
// table, and its advice fixes each.
func TestDoctor(t *testing.T) {
	path := child.Build(t, child.Traceflake)
	doctor := func(e *engine, want string, flags ...string) {
		t.Helper()
		cmd := exec.Command(path, append([]string{"doctor"}, flags...)...)
		cmd.Env = []string{"TRACEFLAKE_CLICKHOUSE_DSN=" + e.DSN()}
		out, err := cmd.CombinedOutput()
		ok := strings.HasPrefix(want, "ok ") || strings.HasPrefix(want, "note ")
		if (err == nil) != ok ||
			!strings.Contains(string(out), want) {
			t.Errorf("want %s, got %v\n%s", want, err, out)
		}
	}
	command := func(e *engine, args string) {
		t.Helper()
		cmd := exec.Command(path, strings.Fields("clickhouse "+args)...)
		cmd.Env = []string{"TRACEFLAKE_CLICKHOUSE_DSN=" + e.DSN()}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	adopted := newEngine(t)
	doctor(adopted, "→ traceflake clickhouse create")
	adopted.run(collectorTable("otel_traces"), nil)
	adopted.exec("ALTER TABLE otel_traces DROP COLUMN ScopeName")
	doctor(adopted, "note   adoption     not possible: clickhouse: the table otel_traces cannot "+
		"be adopted: column ScopeName is missing")
	adopted.exec("ALTER TABLE otel_traces ADD COLUMN ScopeName String AFTER ResourceAttributes")
	doctor(adopted, "ok     table")
	command(adopted, "adopt prepare")
	doctor(adopted, "ok     adoption     prepared")
	command(adopted, "adopt swap")
	doctor(adopted, "ok     adoption     swapped")
	doctor(adopted, "there is no table spans", "--table=spans")

	created := newEngine(t)
	created.creates(clickhouse.Schema{})
	doctor(created, "ok     table")
	created.insert("otel_traces", few()[:1])
	created.exec("DROP VIEW otel_traces_trace_id_ts_mv")
	created.exec("DROP TABLE otel_traces_trace_id_ts")
	doctor(created, "WRONG  table ") // not the adoption: there is none
	command(created, "create")
	doctor(created, "ok     table")
	created.exec("DROP TABLE otel_traces_trace_id_ts")
	doctor(created, "→ follow the message")
	command(created, "create")
	doctor(created, "ok     table")
	created.is("1", "SELECT count() > 0 FROM otel_traces_trace_id_ts")
}
