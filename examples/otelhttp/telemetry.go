package main

import (
	"context"
	"errors"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// startTelemetry sets OpenTelemetry's globals. Call the returned function at the end: it sends the
// remaining spans and counts.
func startTelemetry(ctx context.Context, service string) (
	ids *fleet.IDs, stop func(context.Context) error, err error,
) {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName(service)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, err
	}
	exporter, err := autoexport.NewSpanExporter(ctx, autoexport.WithFallbackSpanExporter(printed))
	if err != nil {
		return nil, nil, err
	}
	reader, err := autoexport.NewMetricReader(ctx, autoexport.WithFallbackMetricReader(scraped))
	if err != nil {
		return nil, nil, err
	}
	ids, err = fleet.FromEnv(ctx) // TRACEFLAKE_STORE and others
	if err != nil {
		return nil, nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(ids), sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	metrics := sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	otel.SetMeterProvider(metrics) // the alerts of deploy/prometheus need it

	// If headers contradict each other, the last propagator wins. xtraceid is the last, so that the
	// client's ID in x-trace-id finds the request even if a gateway has begun its own trace in
	// traceparent. If both headers have the same trace, or x-trace-id is missing, the parent and
	// tracestate of traceparent stay.
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New()))

	return ids, func(ctx context.Context) error {
		return errors.Join(provider.Shutdown(ctx), metrics.Shutdown(ctx))
	}, nil
}

// printed returns an exporter that prints spans. It is used unless OTEL_TRACES_EXPORTER is set:
// otlp sends them to OTEL_EXPORTER_OTLP_ENDPOINT.
func printed(context.Context) (sdktrace.SpanExporter, error) { return stdouttrace.New() }

// scraped returns the reader of promhttp.Handler, for Prometheus to scrape. It is used unless
// OTEL_METRICS_EXPORTER is set: otlp pushes every minute.
func scraped(context.Context) (sdkmetric.Reader, error) { return prometheus.New() }
