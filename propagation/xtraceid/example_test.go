package xtraceid_test

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// An old client sends a 64-bit trace ID in B3 and the whole one in x-trace-id.
func ExampleNew() {
	otel.SetTextMapPropagator(xtraceid.New())

	in := http.Header{}
	in.Set("x-trace-id", "32d1f0a9c8000005a1b2c3d4e5f60718")
	in.Set("X-B3-TraceId", "a1b2c3d4e5f60718")
	in.Set("X-B3-SpanId", "53995c3f42cd8ad8")
	in.Set("X-B3-Sampled", "1")

	ctx := otel.GetTextMapPropagator().Extract(context.Background(), propagation.HeaderCarrier(in))
	sc := trace.SpanContextFromContext(ctx)
	fmt.Println(sc.TraceID(), sc.SpanID(), sc.IsSampled())
	// Output: 32d1f0a9c8000005a1b2c3d4e5f60718 53995c3f42cd8ad8 true
}

// It goes inside the handler that starts the span, such as otelhttp's:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "server")
func ExampleResponseHandler() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	_ = http.Server{Handler: xtraceid.ResponseHandler(mux)}
}
