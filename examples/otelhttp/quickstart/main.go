// Command quickstart is the README's quick start with leases from PostgreSQL, and with metrics for
// the alerts. For another store, import its package instead of pgstore.
package main

import (
	"context"
	"log"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/lease/fleet"
	_ "github.com/traceflake/traceflake/lease/pgstore" // for postgres://
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	reader, err := prometheus.New() // or OTLP
	if err != nil {
		log.Fatal(err)
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	ids, err := fleet.FromEnv(ctx) // instead of idgen.New()
	if err != nil {
		log.Fatal(err)
	}
	exporter, err := stdouttrace.New() // or your own
	if err != nil {
		log.Fatal(err)
	}
	provider := trace.NewTracerProvider(trace.WithIDGenerator(ids), trace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New()))

	hello := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) }
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(http.HandlerFunc(hello)), "hello")
	go func() { log.Println(http.ListenAndServe("127.0.0.1:9464", promhttp.Handler())) }()
	go func() {
		log.Println(http.ListenAndServe("127.0.0.1:8080", handler))
		stop()
	}()
	<-ctx.Done()
	_ = provider.Shutdown(context.Background()) // sends the spans that are left
}
