// A program that propagates a trace with package xtraceid beside W3C's headers.
package main

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func main() {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	in := http.Header{"X-Trace-Id": {"16c6e867fa0000050123456789abcdef"}}
	ctx := both.Extract(context.Background(), propagation.HeaderCarrier(in))
	id := trace.SpanContextFromContext(ctx).TraceID()
	if id.String() != in.Get("x-trace-id") {
		panic(id)
	}
	fmt.Println("continues in", id)
}
