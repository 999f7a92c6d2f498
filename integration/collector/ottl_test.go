package collector

import (
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"
	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/traceid"
)

// recipe is the part of an example that contains OTTL.
type recipe struct {
	Processors struct {
		Transform struct {
			Statements []string `yaml:"trace_statements"`
		} `yaml:"transform/traceflake"`
		Filter struct {
			Conditions []string `yaml:"trace_conditions"`
		} `yaml:"filter/traceflake"`
	}
	Connectors struct {
		Routing struct {
			Table []struct{ Context, Condition string }
		} `yaml:"routing/traceflake"`
	}
}

func readRecipe(t *testing.T) (r recipe) {
	t.Helper()
	file := child.Read(t, "examples/collector/time.yaml")
	if err := yaml.Unmarshal([]byte(file), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The statements of examples/collector/time.yaml write the time of an ID and tell foreign IDs
// apart; the conditions find them. Other spans are not changed.
func TestOTTL(t *testing.T) {
	r := readRecipe(t)
	settings := componenttest.NewNopTelemetrySettings()
	functions := ottlfuncs.StandardFuncs[*ottlspan.TransformContext]()
	parser := must(ottlspan.NewParser(functions, settings, ottlspan.EnablePathContextNames()))
	ofSpans := must(ottlspan.NewParser(functions, settings)) // as in the routing connector
	statements := must(parser.ParseStatements(r.Processors.Transform.Statements))
	foreign := must(parser.ParseConditions(r.Processors.Filter.Conditions))
	for _, row := range r.Connectors.Routing.Table {
		if row.Context == "span" {
			foreign = append(foreign, must(ofSpans.ParseCondition(row.Condition)))
		}
	}
	if len(statements) == 0 || len(foreign) != 2 {
		t.Fatalf("%d statements, %d conditions", len(statements), len(foreign))
	}

	zone := time.Local
	defer func() { time.Local = zone }()
	time.Local = time.FixedZone("", -3*60*60) // the Collector's machine may have any

	now := time.Now()
	ordered, _ := idgen.New().NewIDs(t.Context())
	text := func(at time.Time) string { return traceid.Max(at).String() }
	for _, c := range []struct {
		name, id string
		foreign  bool
	}{
		{"new", ordered.String(), false},
		{"of an hour ago", text(now.Add(-time.Hour)), false},
		{"of two days ago", text(now.Add(-48 * time.Hour)), true},
		{"of the future", text(now.Add(time.Hour)), true},
		{"random", "4bf92f3577b34da6a3ce929d0e0e4736", true},
		{"random, of a large number", "fbf92f3577b34da6a3ce929d0e0e4736", true},
		{"64 bits", "0000000000000000a3ce929d0e0e4736", true},
		{"UUIDv7", "019a0b1c2d3e7f00a3ce929d0e0e4736", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			resource := ptrace.NewTraces().ResourceSpans().AppendEmpty()
			scope := resource.ScopeSpans().AppendEmpty()
			span, id := scope.Spans().AppendEmpty(), must(trace.TraceIDFromHex(c.id))
			span.SetTraceID(pcommon.TraceID(id))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(now))
			ctx := ottlspan.NewTransformContext(resource, scope, span)
			defer ctx.Close()
			sequence := ottlspan.NewStatementSequence(statements, settings,
				ottlspan.WithStatementSequenceErrorMode(ottl.PropagateError))
			if err := sequence.Execute(t.Context(), ctx); err != nil {
				t.Fatal(err)
			}
			attribute, marked := span.Attributes().Get("traceflake.time")
			if marked == c.foreign {
				t.Errorf("it has a time: %t", marked)
			} else if marked {
				at, err := time.Parse(time.RFC3339, attribute.Str())
				if want := traceid.Time(id); err != nil || !at.Equal(want) {
					t.Errorf("the time is %s, %v, want %s", attribute.Str(), err, want)
				}
			}
			for _, condition := range foreign {
				if got := must(condition.Eval(t.Context(), ctx)); got != c.foreign {
					t.Errorf("foreign: %v, want %v", got, c.foreign)
				}
			}
		})
	}
}
