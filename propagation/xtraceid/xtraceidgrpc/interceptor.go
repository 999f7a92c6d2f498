// Package xtraceidgrpc puts the trace ID into the metadata of gRPC responses, as
// xtraceid.ResponseHandler puts it into the headers of HTTP responses. It is a separate module, so
// that package xtraceid does not need gRPC.
//
// The interceptors read the ID from the call's context. otelgrpc's stats
// handler sets it, whatever the order of the options:
//
//	grpc.NewServer(
//		grpc.StatsHandler(otelgrpc.NewServerHandler()),
//		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
//	)
//
// For incoming calls, pass xtraceid's propagator to otelgrpc.WithPropagators.
package xtraceidgrpc

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// UnaryServerInterceptor returns an interceptor that puts the trace ID into the response's header
// metadata, under [xtraceid.DefaultHeader], even if the call fails. Without a trace ID in the
// context it adds nothing. List it before interceptors that may end a call themselves.
func UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if md := header(ctx); md != nil {
			// It fails only if the header has already been sent; then only this metadata is lost.
			_ = grpc.SetHeader(ctx, md)
		}
		return handler(ctx, req)
	}
}

// StreamServerInterceptor does for streams what [UnaryServerInterceptor] does
// for unary calls. The client receives the ID with the first message at the
// latest.
func StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if md := header(stream.Context()); md != nil {
			_ = stream.SetHeader(md)
		}
		return handler(srv, stream)
	}
}

func header(ctx context.Context) metadata.MD {
	id := trace.SpanContextFromContext(ctx).TraceID()
	if !id.IsValid() {
		return nil
	}
	return metadata.Pairs(xtraceid.DefaultHeader, id.String())
}
