package tracing

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

// healthService answers as the request's service name demands.
type healthService struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (healthService) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if r.GetService() == "fails" {
		return nil, status.Error(codes.NotFound, "on purpose")
	}
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func (healthService) Watch(r *grpc_health_v1.HealthCheckRequest, s grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	switch r.GetService() {
	case "fails":
		return status.Error(codes.NotFound, "on purpose")
	case "empty":
		return nil
	}
	for range 3 {
		if err := s.Send(&grpc_health_v1.HealthCheckResponse{}); err != nil {
			return err
		}
	}
	return nil
}

// A trace from an x-trace-id continues over gRPC. Each response, even a failed or an empty one,
// has the trace ID in its header.
func TestGRPC(t *testing.T) {
	for name, propagator := range map[string]propagation.TextMapPropagator{
		"xtraceid": xtraceid.New(),
		"composite": propagation.NewCompositeTextMapPropagator(
			propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New()),
	} {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()), sdktrace.WithSpanProcessor(spans))
			defer func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) }()
			opts := []otelgrpc.Option{otelgrpc.WithTracerProvider(provider), otelgrpc.WithPropagators(propagator)}
			server := grpc.NewServer(
				grpc.StatsHandler(otelgrpc.NewServerHandler(opts...)),
				grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
				grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
			)
			defer server.Stop()
			grpc_health_v1.RegisterHealthServer(server, healthService{})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }()
			dial := func(opts ...grpc.DialOption) grpc_health_v1.HealthClient {
				conn, err := grpc.NewClient(listener.Addr().String(),
					append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return grpc_health_v1.NewHealthClient(conn)
			}
			traced := dial(grpc.WithStatsHandler(otelgrpc.NewClientHandler(opts...)))
			plain := dial()

			for _, c := range []struct {
				name   string
				client grpc_health_v1.HealthClient
				ctx    context.Context
				want   string // if empty, a new trace
			}{
				{"begins in the client", traced, t.Context(), ""},
				{"begins in the server", plain, t.Context(), ""},
				{"comes in", plain, metadata.AppendToOutgoingContext(t.Context(), "x-trace-id", traceT, "b3", lowT+"-"+spanS+"-1"), traceT},
			} {
				for _, answer := range []string{"", "fails", "empty"} {
					check := func(kind string, header metadata.MD) {
						t.Helper()
						want := c.want
						if want == "" {
							want = serverTrace(t, spans)
						}
						if got := header.Get("x-trace-id"); !slices.Equal(got, []string{want}) {
							t.Errorf("%s, %s %q: x-trace-id %q, want %s", c.name, kind, answer, got, want)
						}
						spans.Reset()
					}
					request := &grpc_health_v1.HealthCheckRequest{Service: answer}
					var header metadata.MD
					_, err := c.client.Check(c.ctx, request, grpc.Header(&header))
					if (err != nil) != (answer == "fails") {
						t.Errorf("%s: %v", c.name, err)
					}
					check("unary", header)

					stream, err := c.client.Watch(c.ctx, request)
					if err != nil {
						t.Fatal(err)
					}
					if header, err = stream.Header(); err != nil {
						t.Fatal(err)
					}
					for err == nil {
						_, err = stream.Recv()
					}
					check("stream", header)
				}
			}
		})
	}
}

// serverTrace waits for the server's span and returns its trace.
func serverTrace(t *testing.T, spans *tracetest.SpanRecorder) string {
	t.Helper()
	for range 3000 {
		for _, s := range spans.Started() {
			if s.SpanKind() == trace.SpanKindServer {
				return s.SpanContext().TraceID().String()
			}
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the server has no span")
	return ""
}

// Without tracing the interceptors add nothing and break nothing.
func TestGRPCWithoutTracing(t *testing.T) {
	server := grpc.NewServer(grpc.UnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.StreamInterceptor(xtraceidgrpc.StreamServerInterceptor()))
	defer server.Stop()
	grpc_health_v1.RegisterHealthServer(server, healthService{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	var header metadata.MD
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header)); err != nil || header.Len() == 0 {
		t.Fatalf("%v, %v", header, err)
	}
	stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	more, err := stream.Header()
	if err != nil || len(header.Get("x-trace-id"))+len(more.Get("x-trace-id")) != 0 {
		t.Errorf("%v, %v, %v", header, more, err)
	}
}
