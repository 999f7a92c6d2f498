// Command gateway is a reverse proxy that gives ordered trace IDs to services that cannot be
// changed: each of their traces begins here.
//
//	go run ./gateway 127.0.0.1:8080 http://127.0.0.1:8081
//
// Spans are printed unless OTEL_EXPORTER_OTLP_ENDPOINT says where they go. TRACEFLAKE_STORE leases
// the nodes; PROBE_ADDRESS, such as :8081, serves /ready and /metrics.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	_ "github.com/traceflake/traceflake/lease/k8sstore" // k8s://…
	_ "github.com/traceflake/traceflake/lease/pgstore"  // postgres://…
	_ "github.com/traceflake/traceflake/lease/s3store"  // s3://…
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

var drain, flush = 10 * time.Second, 5 * time.Second // after SIGTERM, for requests, then for spans

func gateway(backend *url.URL, provider trace.TracerProvider, verify func(trace.TraceID) bool) http.Handler {
	headers := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	telemetry := []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(headers)}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns // all are to one host
	proxy := xtraceid.ResponseHandler(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.SetXForwarded() // the caller's are not trusted
			for _, name := range append(headers.Fields(), "b3") {
				r.Out.Header.Del(name) // the transport writes ours
			}
		},
		Transport: otelhttp.NewTransport(transport, telemetry...),
	})
	// For a trace that is not ours a new one begins, with a link, unless x-trace-id came alone.
	public := otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verify))
	return otelhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		span, id := trace.SpanFromContext(r.Context()), r.Header.Get("x-trace-id")
		if theirs, err := trace.TraceIDFromHex(id); err == nil && theirs != span.SpanContext().TraceID() {
			span.SetAttributes(attribute.StringSlice("http.request.header.x-trace-id", []string{id}))
		}
		proxy.ServeHTTP(w, r)
	}), "gateway", append(telemetry, public)...)
}

// newExporter prints spans, unless a variable says where they go.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if os.Getenv("OTEL_TRACES_EXPORTER")+os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")+os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" {
		return autoexport.NewSpanExporter(ctx)
	}
	return stdouttrace.New()
}

// scraped returns the reader behind promhttp.Handler, unless OTEL_METRICS_EXPORTER says otherwise.
func scraped(context.Context) (sdkmetric.Reader, error) { return prometheus.New() }

// run serves until ctx ends.
func run(ctx context.Context, address, backend string) error {
	target, err := url.Parse(backend)
	if err != nil || target.Host == "" {
		return fmt.Errorf("the backend %q is not a URL such as http://127.0.0.1:8081", backend)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("gateway")), resource.WithFromEnv())
	exporter, failed := newExporter(ctx)
	reader, unread := autoexport.NewMetricReader(ctx, autoexport.WithFallbackMetricReader(scraped))
	if err = errors.Join(err, failed, unread); err != nil {
		return err
	}
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(about))
	otel.SetMeterProvider(metrics)
	ids, err := setup.FromEnv(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids), sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	// Ordered IDs of clients are kept, and in a fleet those that verify.
	ours := ids.Verifier(traceid.WithPlausible(5 * time.Minute))
	probes := http.NewServeMux()
	probes.Handle("/ready", ids.ReadyHandler())
	probes.Handle("/metrics", promhttp.Handler())
	err = serve(ctx, address, gateway(target, provider, ours.Verify), probes)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flush)
	defer cancel()
	return errors.Join(err, provider.Shutdown(last), metrics.Shutdown(last), ids.Shutdown(last)) // gives the lease back
}

// serve serves until ctx ends, and ends when the requests have ended or have been cut off.
func serve(ctx context.Context, address string, handler, internal http.Handler) (err error) {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{Handler: handler, IdleTimeout: 2 * time.Minute, BaseContext: func(net.Listener) context.Context { return requests }}
	probes := &http.Server{Handler: internal}
	defer probes.Close()
	ended := make(chan error, 2)
	listen := func(server *http.Server, address, what string) {
		listener, failed := net.Listen("tcp", address)
		if failed != nil {
			ended <- failed
			return
		}
		fmt.Fprintf(os.Stderr, "gateway serves %s at http://%s\n", what, listener.Addr())
		server.ReadHeaderTimeout = 10 * time.Second
		go func() { ended <- server.Serve(listener) }()
	}
	listen(server, address, "requests")
	if probe := os.Getenv("PROBE_ADDRESS"); probe != "" {
		listen(probes, probe, "/ready and /metrics")
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	bounded, cancel := context.WithTimeout(requests, drain)
	defer cancel()
	if server.Shutdown(bounded) != nil {
		cut() // streams that are still open
		bounded, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, server.Shutdown(bounded)) // their spans end
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := errors.New("usage: gateway ADDRESS URL")
	if len(os.Args) == 3 {
		err = run(ctx, os.Args[1], os.Args[2])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}
