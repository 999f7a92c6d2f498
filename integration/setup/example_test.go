package setup_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/contrib/otelconf"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// The SDK ignores ID generators in the declarative configuration; an option of NewSDK sets ours.
// Stores other than bolt need their package imported.
func Example_otelconf() {
	ctx := context.Background()
	ids, err := setup.FromEnv(ctx)
	if err != nil {
		log.Fatal(err)
	}
	config, err := otelconf.ParseYAML([]byte(`
file_format: "1.0"
tracer_provider:
  processors: []
  sampler:
    always_on:
`))
	if err != nil {
		log.Fatal(err)
	}
	sdk, err := otelconf.NewSDK(
		otelconf.WithContext(ctx),
		otelconf.WithOpenTelemetryConfiguration(*config),
		otelconf.WithTracerProviderOptions(sdktrace.WithIDGenerator(ids)),
	)
	if err != nil {
		log.Fatal(err)
	}

	_, span := sdk.TracerProvider().Tracer("example").Start(ctx, "work")
	fmt.Println("made now:", time.Since(traceid.Time(span.SpanContext().TraceID())) < time.Minute)
	span.End()

	// Spans first, then the IDs: the lease is returned when no span needs it.
	if err := sdk.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	if err := ids.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: made now: true
}
