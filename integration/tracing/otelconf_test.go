package tracing

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/otelconf"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/traceid"
)

const configurationFile = `
file_format: "1.0"
tracer_provider:
  processors: []
  id_generator:
    random:
propagator:
  composite: [{tracecontext: }, {baggage: }, {b3multi: }]
`

// What docs/faq.md says of OpenTelemetry's configuration file holds for the version in go.mod: the
// file sets no generator, code does, and the file's propagators have no order.
func TestConfigurationFile(t *testing.T) {
	config, err := otelconf.ParseYAML([]byte(configurationFile))
	if err != nil {
		t.Fatal(err)
	}
	ids := idgen.New()
	defer ids.Close()
	orders := make(map[string]bool)
	for range 100 {
		sdk, err := otelconf.NewSDK(
			otelconf.WithOpenTelemetryConfiguration(*config),
			otelconf.WithTracerProviderOptions(sdktrace.WithIDGenerator(ids)),
		)
		if err != nil {
			t.Fatal(err)
		}
		_, span := sdk.TracerProvider().Tracer("test").Start(t.Context(), "request")
		if id := span.SpanContext().TraceID(); time.Since(traceid.Time(id)).Abs() > time.Minute {
			t.Errorf("%s is not of the generator that was passed", id)
		}
		orders[fmt.Sprintf("%#v", sdk.Propagator())] = true
	}
	if len(orders) < 2 {
		t.Errorf("the propagators are in one order, unlike docs/faq.md: %v", orders)
	}
}
