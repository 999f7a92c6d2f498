package collector

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
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

	want := lines(t, sent, id)
	if len(want) != 2 || !strings.Contains(want[0]+want[1], "out of stock") {
		t.Fatalf("the test sent %q", want)
	}
	traces := run(0, "", id.String(), "-o", "json")
	var decoder ptrace.JSONUnmarshaler
	stored, err := decoder.UnmarshalTraces([]byte(traces))
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, stored, id); !slices.Equal(got, want) {
		t.Errorf("the command prints\n%q\nwhat was sent is\n%q", got, want)
	}
	// The waterfall, of a log line on standard input.
	log := "started\n" + `{"level":"error","msg":"failed","trace_id":"` + id.String() + `"}` + "\n"
	drawn := run(0, log, "--details")
	for _, part := range []string{
		"trace " + id.String() + "\n  2 spans in 1 service, 1h30m", "  ! 1 span failed\n",
		"  ~ 1 span over an hour from the ID's time\n", "\n!~ writer  work",
		"\n     out of stock\n", "\n   writer  work",
	} {
		if !strings.Contains(drawn, part) {
			t.Errorf("the waterfall lacks %q:\n%s", part, drawn)
		}
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

// lines returns each span of a trace in a line of JSON with its resource and scope, sorted. Values
// of attributes are text, as the exporter stores them.
func lines(t *testing.T, td ptrace.Traces, id pcommon.TraceID) (all []string) {
	t.Helper()
	var m ptrace.JSONMarshaler
	text := func(attributes pcommon.Map) {
		sorted := map[string]any{}
		for key, value := range attributes.All() {
			sorted[key] = value.AsString()
		}
		attributes.Clear()
		for _, key := range slices.Sorted(maps.Keys(sorted)) {
			attributes.PutStr(key, sorted[key].(string))
		}
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.TraceID() != id {
					continue
				}
				one := ptrace.NewTraces()
				resource := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(resource.Resource())
				text(resource.Resource().Attributes())
				scope := resource.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(scope.Scope())
				span := scope.Spans().AppendEmpty()
				s.CopyTo(span)
				text(span.Attributes())
				for _, event := range span.Events().All() {
					text(event.Attributes())
				}
				for _, link := range span.Links().All() {
					text(link.Attributes())
				}
				body, err := m.MarshalTraces(one)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(body))
			}
		}
	}
	slices.Sort(all)
	return all
}
