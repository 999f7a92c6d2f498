// Command gateway is a reverse proxy that gives ordered trace IDs to services that cannot be
// changed: each of their traces begins here.
//
//	go run ./gateway 127.0.0.1:8080 http://127.0.0.1:8081
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

func gateway(backend *url.URL, provider trace.TracerProvider) http.Handler {
	headers := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	telemetry := []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(headers)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.SetXForwarded()
			for _, name := range append(headers.Fields(), "b3") { // the transport writes ours
				r.Out.Header.Del(name)
			}
		},
		Transport: otelhttp.NewTransport(http.DefaultTransport, telemetry...),
	}
	// Ordered IDs of clients are kept. For others a new trace begins, with a link to theirs.
	ordered := traceid.NewVerifier(nil, traceid.WithPlausible(5*time.Minute))
	public := otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(ordered.Verify))
	return otelhttp.NewHandler(xtraceid.ResponseHandler(proxy), "gateway", append(telemetry, public)...)
}

func run(ctx context.Context, address, backend string) error {
	target, err := url.Parse(backend)
	if err != nil || target.Host == "" {
		return fmt.Errorf("the backend %q is not a URL such as http://127.0.0.1:8081", backend)
	}
	exporter, err := autoexport.NewSpanExporter(ctx) // OTEL_EXPORTER_OTLP_ENDPOINT and others
	if err != nil {
		return err
	}
	ids, err := setup.FromEnv(ctx) // TRACEFLAKE_STORE and others
	if err != nil {
		return errors.Join(err, exporter.Shutdown(ctx))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids), sdktrace.WithBatcher(exporter))
	server := &http.Server{Addr: address, Handler: gateway(target, provider), ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() { stopped <- server.Shutdown(context.WithoutCancel(ctx)) })
	if err = server.ListenAndServe(); errors.Is(err, http.ErrServerClosed) {
		err = <-stopped
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, provider.Shutdown(last), ids.Shutdown(last))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
