package tracing

import (
	"context"
	"net"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
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

// idsOf makes a unary call and a stream, and returns the trace IDs in the header of each response.
func idsOf(ctx context.Context, t *testing.T, conn *grpc.ClientConn, answer string) (ids [][]string) {
	t.Helper()
	client, request := grpc_health_v1.NewHealthClient(conn), &grpc_health_v1.HealthCheckRequest{Service: answer}
	var unary metadata.MD
	if _, err := client.Check(ctx, request, grpc.Header(&unary)); (err != nil) != (answer == "fails") {
		t.Errorf("%q: %v", answer, err)
	}
	watch, err := client.Watch(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := watch.Header()
	if err != nil {
		t.Fatal(err)
	}
	return [][]string{unary.Get("x-trace-id"), stream.Get("x-trace-id")}
}

// With the interceptors and OpenTelemetry's globals, a trace continues over gRPC. Each response,
// even a failed or an empty one, has the trace ID in its header. Without tracing the interceptors
// add nothing.
func TestGRPC(t *testing.T) {
	untraced := serve(t, grpc.NewServer(grpc.UnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.StreamInterceptor(xtraceidgrpc.StreamServerInterceptor())))

	before, beforeProvider := otel.GetTextMapPropagator(), otel.GetTracerProvider()
	defer func() {
		otel.SetTextMapPropagator(before)
		otel.SetTracerProvider(beforeProvider)
	}()
	otel.SetTextMapPropagator(xtraceid.New())
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New())))
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
	plain := func(address string) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}

	ctx, span := otel.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	incoming := metadata.AppendToOutgoingContext(t.Context(), "x-trace-id", traceT, "b3", lowT+"-"+spanS+"-1")
	for _, c := range []struct {
		name string
		conn *grpc.ClientConn
		ctx  context.Context
		want string // a regular expression
	}{
		{"begins in the client", conn, ctx, span.SpanContext().TraceID().String()},
		{"begins in the server", plain(address), t.Context(), "[0-9a-f]{32}"},
		{"comes in", plain(address), incoming, traceT},
		{"without tracing", plain(untraced), incoming, ""},
	} {
		for _, answer := range []string{"", "fails", "empty"} {
			for _, ids := range idsOf(c.ctx, t, c.conn, answer) {
				if got := strings.Join(ids, " "); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
					t.Errorf("%s, %q: x-trace-id %q, want %s", c.name, answer, got, c.want)
				}
			}
		}
	}
}
