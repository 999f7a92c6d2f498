package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rs/cors"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// route is a request that edge serves.
type route struct {
	Method, Path string
	spans        uint64 // of both services, if the trace is sampled
}

var routes = []route{
	{http.MethodPost, "/checkout", 15},
	{http.MethodGet, "/orders/latest", 8},
}

// services are edge, which clients call, and orders, which edge calls.
type services struct{ edge, orders *service }

// startServices starts both on free ports: orders on loopback, edge on host.
func startServices(spans *pipeline, host string) (*services, error) {
	orders, err := newService(spans, "orders")
	if err != nil {
		return nil, err
	}
	orders.handle("POST /orders", orders.does(
		step("reserve stock", 3*time.Millisecond, db("UPDATE stock")),
		step("price order", 500*time.Microsecond, nil,
			step("load prices", 2*time.Millisecond, db("SELECT prices")),
			step("apply discounts", 800*time.Microsecond, nil),
			step("compute tax", 600*time.Microsecond, nil)),
		chargeCard,
		step("insert order", 3*time.Millisecond, db("INSERT INTO orders")),
		publish("order.created"),
	))
	orders.handle("GET /orders/latest", orders.does(
		step("look up cache", 300*time.Microsecond, db("GET order")),
		step("select order", 3*time.Millisecond, db("SELECT orders")),
		step("render order", 400*time.Microsecond, nil),
	))
	if err := orders.start(loopback); err != nil {
		return nil, err
	}

	edge, err := newService(spans, "edge")
	if err != nil {
		return nil, errors.Join(err, orders.close(context.Background()))
	}
	authenticate := step("authenticate", 400*time.Microsecond, nil,
		step("load session", 2*time.Millisecond, db("GET session")))
	edge.handle("POST /checkout", edge.does(
		authenticate,
		step("validate cart", time.Millisecond, nil),
		edge.call(http.MethodPost, orders.url+"/orders"),
		step("render receipt", time.Millisecond, nil),
	))
	edge.handle("GET /orders/latest", edge.does(
		authenticate,
		edge.call(http.MethodGet, orders.url+"/orders/latest"),
	))
	edge.server.Handler = crossOrigin(edge.mux)
	if err := edge.start(host); err != nil {
		return nil, errors.Join(err, orders.close(context.Background()))
	}
	return &services{edge: edge, orders: orders}, nil
}

// close waits for running requests.
func (s *services) close(ctx context.Context) error {
	return errors.Join(s.edge.close(ctx), s.orders.close(ctx))
}

// headers is the propagator of both services and of the clients.
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
	telemetry := []otelhttp.Option{
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(headers),
	}
	transport := &http.Transport{MaxIdleConnsPerHost: concurrency}
	s := &service{
		mux:       http.NewServeMux(),
		client:    &http.Client{Transport: otelhttp.NewTransport(transport, telemetry...)},
		tracer:    provider.Tracer("github.com/traceflake/traceflake/integration/demo"),
		telemetry: telemetry,
	}
	s.server = &http.Server{Handler: s.mux, ReadHeaderTimeout: time.Minute}
	return s, nil
}

// handle traces a route. The response carries the trace ID in x-trace-id.
func (s *service) handle(pattern string, h http.Handler) {
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

func (s *service) close(ctx context.Context) error {
	s.client.CloseIdleConnections()
	return s.server.Shutdown(ctx)
}

// does handles a request by doing work. The response is short, so net/http sends it after the
// handlers have returned: once a client has the response, the request's spans have ended.
func (s *service) does(parts ...work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, part := range parts {
			if err := part(r.Context(), s.tracer); err != nil {
				trace.SpanFromContext(r.Context()).RecordError(err)
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
		_, _ = io.WriteString(w, "done\n") // fails only if the client has disconnected
	})
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

func db(statement string) []trace.SpanStartOption {
	return []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("db.query.text", statement))}
}
