// A service that knows OpenTelemetry and nothing else. It prints the IDs of its traces.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

var ctx = context.Background()

// spans starts more spans than a generator has IDs ready.
func spans(tracer oteltrace.Tracer) {
	for range 1000 {
		_, span := tracer.Start(ctx, "work")
		span.End()
		fmt.Println(span.SpanContext().TraceID())
	}
}

// traced is an exporter whose last request is traced, as otelc traces those of OTLP's.
type traced struct{ tracer oteltrace.Tracer }

func (*traced) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }

func (t *traced) Shutdown(context.Context) error {
	spans(t.tracer)
	return nil
}

// given is the service's own generator.
type given struct{ trace.IDGenerator }

func (given) NewIDs(context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	return oteltrace.TraceID{1}, oteltrace.SpanID{1}
}

func main() {
	switch os.Args[1] {
	case "killed":
		spans(trace.NewTracerProvider().Tracer("service"))
	case "given":
		provider := trace.NewTracerProvider(trace.WithIDGenerator(given{}))
		spans(provider.Tracer("service"))
		provider.Shutdown(ctx)
	case "providers":
		first, second := trace.NewTracerProvider(), trace.NewTracerProvider()
		spans(first.Tracer("service"))
		first.Shutdown(ctx)
		first.Shutdown(ctx)
		spans(second.Tracer("service"))
		second.Shutdown(ctx)
		exporter := new(traced)
		third := trace.NewTracerProvider(trace.WithSyncer(exporter))
		exporter.tracer = third.Tracer("service")
		third.Shutdown(ctx)
	case "propagator":
		fmt.Println(autoprop.NewTextMapPropagator().Fields())
		autoprop.RegisterTextMapPropagator("xtraceid", propagation.Baggage{})
		fmt.Println(autoprop.NewTextMapPropagator().Fields())
	}
}
