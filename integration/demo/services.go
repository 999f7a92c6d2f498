package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/rs/cors"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// route is a request that edge serves.
type route struct {
	Method, Path string
	spans        uint64 // of both services
}

var routes = []route{
	{http.MethodPost, "/checkout", 12},
	{http.MethodGet, "/orders/latest", 7},
}

// startServices starts edge, which clients call, and orders, which edge calls, on free ports: orders
// on loopback, edge on host.
func (d *program) startServices(host string) error {
	orders, err := newService(d.spans, "orders")
	if err != nil {
		return err
	}
	if d.edge, err = newService(d.spans, "edge"); err != nil {
		return err
	}
	d.atEnd(orders.close)
	d.atEnd(d.edge.close)
	orders.handle("POST /orders",
		step("reserve stock", 3*time.Millisecond),
		step("price order", 500*time.Microsecond,
			step("load prices", 2*time.Millisecond),
			step("compute tax", 600*time.Microsecond)),
		step("charge card", 6*time.Millisecond),
		step("insert order", 3*time.Millisecond))
	orders.handle("GET /orders/latest",
		step("select order", 3*time.Millisecond),
		step("render order", 400*time.Microsecond))
	if err := orders.start(loopback); err != nil {
		return err
	}
	authenticate := step("authenticate", 400*time.Microsecond, step("load session", 2*time.Millisecond))
	d.edge.handle("POST /checkout",
		authenticate,
		d.edge.call(http.MethodPost, orders.url+"/orders"),
		step("render receipt", time.Millisecond))
	d.edge.handle("GET /orders/latest",
		authenticate,
		d.edge.call(http.MethodGet, orders.url+"/orders/latest"))
	if err := d.edge.start(host); err != nil {
		return err
	}
	d.phase("Services", "edge at %s calls orders at %s", d.edge.url, orders.url)
	return nil
}

// headers is the propagator of both services.
var headers = propagation.NewCompositeTextMapPropagator(xtraceid.New(), propagation.Baggage{})

// service is an HTTP server with otelhttp, our generator and our propagator.
type service struct {
	url       string
	mux       *http.ServeMux
	server    *http.Server
	client    *http.Client
	tracer    trace.Tracer
	telemetry []otelhttp.Option
}

func newService(spans *pipeline, name string) (*service, error) {
	provider, err := spans.provider(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &service{
		mux:       http.NewServeMux(),
		tracer:    provider.Tracer("github.com/traceflake/traceflake/integration/demo"),
		telemetry: []otelhttp.Option{otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(headers)},
	}
	s.client = &http.Client{Transport: otelhttp.NewTransport(&http.Transport{MaxIdleConnsPerHost: concurrency}, s.telemetry...)}
	s.server = &http.Server{Handler: crossOrigin(s.mux), ReadHeaderTimeout: time.Minute}
	return s, nil
}

// crossOrigin lets pages of other origins call a service and trace the calls: a preflight allows
// our headers and is not traced itself. xtraceid.ResponseHandler lets scripts read the response's
// x-trace-id. Any origin is allowed, because this service protects nothing; list your own origins
// in production.
func crossOrigin(next http.Handler) http.Handler {
	return cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{http.MethodGet, http.MethodPost},
		AllowedHeaders: headers.Fields(),
		MaxAge:         600, // seconds
	}).Handler(next)
}

// handle traces a route, which is handled by doing work. The response carries the trace ID in
// x-trace-id. It is short, so net/http sends it after the handlers have returned: once a client has
// the response, the request's spans have ended.
func (s *service) handle(pattern string, parts ...work) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, part := range parts {
			if err := part(r.Context(), s.tracer); err != nil {
				trace.SpanFromContext(r.Context()).RecordError(err)
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
		_, _ = io.WriteString(w, "done\n") // fails only if the client has disconnected
	})
	s.mux.Handle(pattern, otelhttp.NewHandler(xtraceid.ResponseHandler(h), pattern, s.telemetry...))
}

const loopback = "127.0.0.1"

// start listens on a free port.
func (s *service) start(host string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("cannot serve on %q: %w", host, err)
	}
	s.url = "http://" + listener.Addr().String()
	go func() { _ = s.server.Serve(listener) }() // returns after Shutdown
	return nil
}

// close waits for running requests.
func (s *service) close(ctx context.Context) error {
	s.client.CloseIdleConnections()
	return s.server.Shutdown(ctx)
}

// work is what a handler does and the spans that it creates.
type work func(ctx context.Context, tracer trace.Tracer) error

// step is one span that takes about the given time by itself and then runs its parts.
func step(name string, about time.Duration, parts ...work) work {
	return func(ctx context.Context, tracer trace.Tracer) error {
		ctx, span := tracer.Start(ctx, name)
		defer span.End()
		time.Sleep(about/2 + rand.N(about))
		for _, part := range parts {
			if err := part(ctx, tracer); err != nil {
				return err
			}
		}
		return nil
	}
}

// call is work done by another service.
func (s *service) call(method, url string) work {
	return func(ctx context.Context, _ trace.Tracer) error {
		r, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			return err
		}
		response, err := s.client.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		err = errors.Join(err, response.Body.Close())
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s: %s", method, url, response.Status)
		}
		return err
	}
}
