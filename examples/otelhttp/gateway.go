package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// newGateway returns a reverse proxy to BACKEND_URL, a service that cannot be changed: its traces
// begin here and have ordered IDs. Callers are trusted only if, with leases, their trace ID
// verifies. Of other callers it keeps ordered trace IDs of the last five minutes; the sampler here
// decides, and their span becomes a link.
func newGateway(ids *fleet.IDs) (http.Handler, error) {
	address := os.Getenv("BACKEND_URL")
	backend, err := url.Parse(address)
	if err != nil || backend.Host == "" {
		return nil, fmt.Errorf("BACKEND_URL is %q: want a URL such as http://127.0.0.1:8081",
			address)
	}
	headers := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns // all are to one host
	proxy := xtraceid.ResponseHandler(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.SetXForwarded()
			xtraceid.RemoveContext(r.Out.Header) // the transport writes ours
		},
		Transport: otelhttp.NewTransport(transport, otelhttp.WithPropagators(headers)),
	})
	handler := func(w http.ResponseWriter, r *http.Request) {
		span, id := trace.SpanFromContext(r.Context()), r.Header.Get("x-trace-id")
		theirs, err := trace.TraceIDFromHex(id)
		if err == nil && theirs != span.SpanContext().TraceID() {
			span.SetAttributes(
				attribute.StringSlice("http.request.header.x-trace-id", []string{id}))
		}
		proxy.ServeHTTP(w, r)
	}
	// In place of a foreign trace a new one begins, with a link, unless x-trace-id came alone.
	verifier := ids.Verifier(traceid.WithPlausible(5 * time.Minute))
	public := otelhttp.WithPropagators(xtraceid.Untrusted(headers,
		xtraceid.Trust{Context: verifier.Verify, TraceID: verifier.Plausible}))
	return otelhttp.NewHandler(http.HandlerFunc(handler), "gateway", public), nil
}
