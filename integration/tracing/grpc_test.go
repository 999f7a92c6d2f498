package tracing

import (
	"context"
	"errors"
	"net"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

// healthService answers as the request's service name demands: Check fails for unknown ones. Like
// a handler that forwards another server's metadata, it sets IDs of its own.
type healthService struct{ *health.Server }

type (
	request  = grpc_health_v1.HealthCheckRequest
	response = grpc_health_v1.HealthCheckResponse
)

var othersID = metadata.Pairs("X-Trace-ID", traceU, "x-other", "kept")

func (s healthService) Check(ctx context.Context, r *request) (*response, error) {
	if err := grpc.SetHeader(ctx, othersID); err != nil {
		return nil, err
	}
	return s.Server.Check(ctx, r)
}

func (healthService) Watch(r *request, s grpc.ServerStreamingServer[response]) error {
	err := errors.Join(s.SetHeader(othersID), grpc.SetHeader(s.Context(), othersID))
	if err != nil {
		return err
	}
	switch r.GetService() {
	case "fails":
		return status.Error(codes.NotFound, "on purpose")
	case "empty":
		return nil
	}
	return s.Send(&response{})
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

// idsOf sends a unary call and a stream, and returns the trace IDs in the header of each response.
func idsOf(
	ctx context.Context, t *testing.T, conn *grpc.ClientConn, answer string,
) (ids [][]string) {
	t.Helper()
	client, request := grpc_health_v1.NewHealthClient(conn), &request{Service: answer}
	var unary metadata.MD
	_, err := client.Check(ctx, request, grpc.Header(&unary))
	if (err != nil) != (answer == "fails") {
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
	if len(unary.Get("x-other")) != 1 || len(stream.Get("x-other")) != 2 {
		t.Errorf("%q: of the handler's header %q and %q came", answer, unary, stream)
	}
	return [][]string{unary.Get("x-trace-id"), stream.Get("x-trace-id")}
}

// With the interceptors and OpenTelemetry's globals, a trace continues over gRPC. Each response,
// even a failed or an empty one, has only the trace ID in its header, whatever the handler sets.
// Without tracing the interceptors add nothing, and the handler's ID stays. Two different incoming
// IDs are ignored. A refused trace becomes a link.
func TestGRPC(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	globals(t, sdktrace.WithSpanProcessor(spans))
	propagator := xtraceidgrpc.Propagator(otel.GetTextMapPropagator())
	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithPropagators(propagator))),
		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
	)
	interceptors := []grpc.ServerOption{
		grpc.UnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.StreamInterceptor(xtraceidgrpc.StreamServerInterceptor())}
	untraced := grpc.NewServer(interceptors...)
	refusing := grpc.NewServer(append(interceptors, grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithPropagators(xtraceid.Untrusted(propagator, xtraceid.Trust{})))))...)
	dial := func(address string, options ...grpc.DialOption) *grpc.ClientConn {
		conn, err := grpc.NewClient(address, append(options,
			grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	address := serve(t, server)
	plain := dial(address)

	ctx, span := otel.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	incoming := metadata.AppendToOutgoingContext(t.Context(), "x-trace-id", traceT, "b3",
		lowT+"-"+spanS+"-1")
	const other = "([^3].|3[^2])[0-9a-f]{30}"
	for _, c := range []struct {
		name string
		conn *grpc.ClientConn
		ctx  context.Context
		want string // a regular expression
	}{
		{"begins in the client", dial(address, grpc.WithStatsHandler(otelgrpc.NewClientHandler())),
			ctx, span.SpanContext().TraceID().String()},
		{"begins in the server", plain, t.Context(), "[0-9a-f]{32}"},
		{"comes in", plain, incoming, traceT},
		{"comes in twice", plain,
			metadata.AppendToOutgoingContext(incoming, "x-trace-id", traceT), traceT},
		{"two different ones, ignored", plain, metadata.AppendToOutgoingContext(t.Context(),
			"x-trace-id", traceT, "x-trace-id", traceU), other},
		{"without tracing", dial(serve(t, untraced)), incoming, "(" + traceU + " ?)+"},
		{"refused", dial(serve(t, refusing)), incoming, other},
	} {
		for _, answer := range []string{"", "fails", "empty"} {
			for _, ids := range idsOf(c.ctx, t, c.conn, answer) {
				got := strings.Join(ids, " ")
				if !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
					t.Errorf("%s, %q: x-trace-id %q, want %s", c.name, answer, got, c.want)
				}
			}
		}
	}
	refusing.GracefulStop() // its calls, and their spans, have ended
	linked := 0
	for _, span := range spans.Ended() {
		for _, link := range span.Links() {
			if linked++; link.SpanContext.SpanID().String() != spanS {
				t.Errorf("%s has the link %v", span.Name(), link)
			}
		}
	}
	if linked != 6 {
		t.Errorf("%d links, want one for each of 6 refused calls", linked)
	}
}
