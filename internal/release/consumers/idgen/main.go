// A program with OpenTelemetry's SDK and the generator of package idgen.
package main

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/idgen"
)

func main() {
	ctx := context.Background()
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
	_, span := provider.Tracer("consumer").Start(ctx, "work")
	fmt.Println("a span of", span.SpanContext().TraceID())
	span.End()
	if err := provider.Shutdown(ctx); err != nil {
		panic(err)
	}
}
