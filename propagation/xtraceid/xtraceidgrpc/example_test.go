package xtraceidgrpc_test

import (
	"context"
	"fmt"
	"net"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

// A client reads the trace ID of its call. In a service otelgrpc's stats handler
// starts the span; here a first interceptor stands in for it.
func ExampleUnaryServerInterceptor() {
	id, _ := trace.TraceIDFromHex("32d1f0a9c8000005a1b2c3d4e5f60718")
	tracing := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}})
		return handler(trace.ContextWithSpanContext(ctx, sc), req)
	}

	server := grpc.NewServer(grpc.ChainUnaryInterceptor(tracing, xtraceidgrpc.UnaryServerInterceptor()))
	defer server.Stop()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(listener) }()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	var header metadata.MD
	_, err = grpc_health_v1.NewHealthClient(conn).Check(context.Background(),
		&grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
	fmt.Println(header.Get("x-trace-id"), err)
	// Output: [32d1f0a9c8000005a1b2c3d4e5f60718] <nil>
}
