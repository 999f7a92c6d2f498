package collector

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
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

	stored, want := map[string]string{}, map[string]string{} // by span ID
	printed := json.NewDecoder(strings.NewReader(run(0, "", id.String(), "-o", "json")))
	for printed.More() {
		var row struct {
			SpanID, SpanName, StatusMessage, ScopeName string
			Timestamp                                  time.Time
			Duration                                   int64
			ResourceAttributes, SpanAttributes         map[string]string

			Events []any `json:"Events.Attributes"`
			Links  []any `json:"Links.TraceId"`
		}
		if err := printed.Decode(&row); err != nil {
			t.Fatal(err)
		}
		stored[row.SpanID] = fmt.Sprint(row.Timestamp.UTC(), row.Duration, row.SpanName,
			row.StatusMessage, row.ScopeName, len(row.ResourceAttributes), len(row.SpanAttributes),
			len(row.Events), len(row.Links))
	}
	of := sent.ResourceSpans().At(0)
	for _, s := range of.ScopeSpans().At(0).Spans().All() {
		if s.TraceID() == id {
			want[s.SpanID().String()] = fmt.Sprint(s.StartTimestamp().AsTime(),
				uint64(s.EndTimestamp()-s.StartTimestamp()), s.Name(), s.Status().Message(),
				of.ScopeSpans().At(0).Scope().Name(), of.Resource().Attributes().Len(),
				s.Attributes().Len(), s.Events().Len(), s.Links().Len())
		}
	}
	if !maps.Equal(stored, want) {
		t.Errorf("the command prints\n%v\nof the spans\n%v", stored, want)
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
