package setup_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/otelconf"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
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

// OTEL_PROPAGATORS selects the propagator once its name is registered. Register it once per
// process, in main or in an init function.
func Example_autoprop() {
	if err := os.Setenv("OTEL_PROPAGATORS", "xtraceid,baggage"); err != nil { // as the deployment does
		log.Fatal(err)
	}
	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
	otel.SetTextMapPropagator(autoprop.NewTextMapPropagator())

	ctx := context.Background()
	ids, err := setup.FromEnv(ctx)
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
	otel.SetTracerProvider(provider)

	ctx, span := otel.Tracer("example").Start(ctx, "call")
	header := make(http.Header)
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(header))
	span.End()
	id, err := trace.TraceIDFromHex(header.Get("x-trace-id"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent:", id == span.SpanContext().TraceID(), header.Get("x-b3-spanid") == span.SpanContext().SpanID().String())

	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	if err := ids.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: sent: true true
}
