package xtraceid_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

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

// A proxy's request ID in the form of a UUID names the trace.
func ExampleWithDashes() {
	propagator := xtraceid.New(xtraceid.WithHeader("x-request-id"), xtraceid.WithDashes())
	in := http.Header{"X-Request-Id": {"16c6e867-fa00-0005-0123-456789abcdef"}}
	ctx := propagator.Extract(context.Background(), propagation.HeaderCarrier(in))
	fmt.Println(trace.SpanContextFromContext(ctx).TraceID())
	// Output: 16c6e867fa0000050123456789abcdef
}

// ResponseHandler goes inside the handler that starts the span, such as otelhttp's:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "server")
func ExampleResponseHandler() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	handler := xtraceid.ResponseHandler(mux, xtraceid.WithServerTiming())

	id, err := trace.TraceIDFromHex("16c6e867fa0000050123456789abcdef")
	if err != nil {
		panic(err)
	}
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1},
		TraceFlags: trace.FlagsSampled})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r.WithContext(trace.ContextWithSpanContext(r.Context(), sc)))
	fmt.Println(w.Header().Get("x-trace-id"))
	fmt.Println(w.Header().Get("server-timing"))
	// Output:
	// 16c6e867fa0000050123456789abcdef
	// traceparent;desc="00-16c6e867fa0000050123456789abcdef-0100000000000000-01"
}
