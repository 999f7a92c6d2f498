package tracing

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

// healthService answers as the request's service name demands: Check fails for unknown ones.
type healthService struct{ *health.Server }

func (healthService) Watch(r *grpc_health_v1.HealthCheckRequest, s grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	switch r.GetService() {
	case "fails":
		return status.Error(codes.NotFound, "on purpose")
	case "empty":
		return nil
	}
	return s.Send(&grpc_health_v1.HealthCheckResponse{})
}

// serve runs a server with the health service until the test ends, and returns its address.
func serve(t *testing.T, server *grpc.Server) (address string) {
	t.Helper()
	t.Cleanup(server.Stop)
	service := health.NewServer()
	service.SetServingStatus("empty", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthService{service})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String()
}

// plainClient returns a client without tracing.
func plainClient(t *testing.T, address string) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

// headersOf makes a unary call and a stream, and returns the header of each response.
func headersOf(ctx context.Context, t *testing.T, client grpc_health_v1.HealthClient, answer string) (unary, stream metadata.MD) {
	t.Helper()
	request := &grpc_health_v1.HealthCheckRequest{Service: answer}
	if _, err := client.Check(ctx, request, grpc.Header(&unary)); (err != nil) != (answer == "fails") {
		t.Errorf("%q: %v", answer, err)
	}
	s, err := client.Watch(ctx, request)
	if err == nil {
		stream, err = s.Header()
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Recv()
	}
	return unary, stream
}

// With the interceptors and OpenTelemetry's globals, a trace continues over gRPC. Each response,
// even a failed or an empty one, has the trace ID in its header.
func TestGRPC(t *testing.T) {
	before, beforeProvider := otel.GetTextMapPropagator(), otel.GetTracerProvider()
	defer func() {
		otel.SetTextMapPropagator(before)
		otel.SetTracerProvider(beforeProvider)
	}()
	spans := tracetest.NewSpanRecorder()
	otel.SetTextMapPropagator(xtraceid.New())
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()), sdktrace.WithSpanProcessor(spans)))

	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler()),
		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
	)
	address := serve(t, server)
	conn, err := grpc.NewClient(address, grpc.WithStatsHandler(otelgrpc.NewClientHandler()),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	traced, plain := grpc_health_v1.NewHealthClient(conn), plainClient(t, address)

	ctx, span := otel.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	incoming := metadata.AppendToOutgoingContext(t.Context(), "x-trace-id", traceT, "b3", lowT+"-"+spanS+"-1")
	for _, c := range []struct {
		name   string
		client grpc_health_v1.HealthClient
		ctx    context.Context
		want   string // if empty, new traces
	}{
		{"begins in the client", traced, ctx, span.SpanContext().TraceID().String()},
		{"begins in the server", plain, t.Context(), ""},
		{"comes in", plain, incoming, traceT},
	} {
		for _, answer := range []string{"", "fails", "empty"} {
			spans.Reset()
			unary, stream := headersOf(c.ctx, t, c.client, answer)
			traces := serverTraces(t, spans)
			for i, header := range []metadata.MD{unary, stream} {
				got := header.Get("x-trace-id")
				if !slices.Equal(got, traces[i:i+1]) || c.want != "" && got[0] != c.want {
					t.Errorf("%s, %q: x-trace-id %q, want the span's %s, %s", c.name, answer, got, traces[i], c.want)
				}
			}
		}
	}
}

// serverTraces waits for the server's two spans and returns their traces.
func serverTraces(t *testing.T, spans *tracetest.SpanRecorder) (traces []string) {
	t.Helper()
	for range 3000 {
		traces = nil
		for _, s := range spans.Started() {
			if s.SpanKind() == trace.SpanKindServer {
				traces = append(traces, s.SpanContext().TraceID().String())
			}
		}
		if len(traces) == 2 {
			return traces
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the server has the spans %q, want two", traces)
	return nil
}

// Without tracing the interceptors add nothing and break nothing.
func TestGRPCWithoutTracing(t *testing.T) {
	address := serve(t, grpc.NewServer(grpc.UnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.StreamInterceptor(xtraceidgrpc.StreamServerInterceptor())))
	unary, stream := headersOf(t.Context(), t, plainClient(t, address), "")
	if unary.Len() == 0 || len(unary.Get("x-trace-id"))+len(stream.Get("x-trace-id")) != 0 {
		t.Errorf("%v, %v", unary, stream)
	}
}
