package collector

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestTraceCommand: `traceflake trace ID` finds everything that the Collector's exporter stored, by
// the ID alone.
func TestTraceCommand(t *testing.T) {
	e := database(t)
	t.Setenv("TRACEFLAKE_CLICKHOUSE_DSN", e.DSN())
	sent := spans(idgen.New(), 1)
	id := sent.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID()
	exporter := collector(t, examples+"overlay.yaml")
	copied := ptrace.NewTraces()
	sent.CopyTo(copied)
	if err := exporter.ConsumeTraces(t.Context(), copied); err != nil {
		t.Fatal(err)
	}

	path := child.Build(t, child.Traceflake)
	run := func(code int, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(path, append([]string{"trace"}, args...)...)
		cmd.Env = append(os.Environ(), "NO_COLOR=1")
		cmd.Stdin = strings.NewReader(stdin)
		return child.Output(t, code, cmd)
	}

	stored := map[string]map[string]any{} // the rows, by their span IDs
	for line := range strings.Lines(run(0, "", id.String(), "-o", "json")) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		stored[fmt.Sprint(row["SpanId"])] = row
	}
	of := sent.ResourceSpans().At(0)
	for _, s := range of.ScopeSpans().At(0).Spans().All() {
		if s.TraceID() != id {
			continue
		}
		row := stored[s.SpanID().String()]
		delete(stored, s.SpanID().String())
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(row["Timestamp"]))
		if err != nil || !at.Equal(s.StartTimestamp().AsTime()) ||
			row["Duration"] != float64(s.EndTimestamp()-s.StartTimestamp()) ||
			row["SpanName"] != s.Name() || row["StatusMessage"] != s.Status().Message() ||
			row["ScopeName"] != of.ScopeSpans().At(0).Scope().Name() ||
			size(row["ResourceAttributes"]) != of.Resource().Attributes().Len() ||
			size(row["SpanAttributes"]) != s.Attributes().Len() ||
			size(row["Events.Attributes"]) != s.Events().Len() ||
			size(row["Links.TraceId"]) != s.Links().Len() {
			t.Errorf("%v: the command prints\n%v\nof the span %s", err, row, s.SpanID())
		}
	}
	if len(stored) > 0 {
		t.Errorf("the command prints spans that were not sent: %v", stored)
	}
	// The waterfall, of a log line on standard input.
	log := "started\n" + `{"level":"error","msg":"failed","trace_id":"` + id.String() + `"}` + "\n"
	if drawn := run(0, log, "--details"); !strings.Contains(drawn, "\n    out of stock\n") {
		t.Errorf("the waterfall lacks the span's error:\n%s", drawn)
	}

	missing := "1950fb0f8880000086cdcca4ab608495"
	if problem := run(1, "", missing); !strings.Contains(problem, "trace "+missing+
		" is not in ClickHouse's table otel_traces; if the ID is traceflake's, its time is 2026-") {
		t.Errorf("a missing trace: %q", problem)
	}
	problem := run(2, "", id.String(), "--table", "nothere")
	if !strings.Contains(problem, "nothere") {
		t.Errorf("a missing table: %q", problem)
	}

	// The trace continues after the table was exchanged.
	for _, operation := range []string{"prepare", "swap"} {
		cmd := exec.Command(path, "clickhouse", "adopt", operation)
		if operation == "prepare" {
			cmd.Args = append(cmd.Args, "--policies-checked") // this engine shows none
		}
		child.Output(t, 0, cmd)
	}
	found := func(spans string) {
		t.Helper()
		if drawn := run(0, "", id.String()); !strings.Contains(drawn, spans+" in 1 service") {
			t.Errorf("after the swap there are not %s:\n%s", spans, drawn)
		}
	}
	found("2 spans")
	if err := exporter.ConsumeTraces(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	found("4 spans")
}

// size returns the number of elements of a value from JSON.
func size(value any) int { return reflect.ValueOf(value).Len() }
