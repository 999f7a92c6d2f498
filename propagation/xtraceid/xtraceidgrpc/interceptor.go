// Package xtraceidgrpc puts the trace ID into the metadata of gRPC responses, as
// xtraceid.ResponseHandler puts it into the headers of HTTP responses. It is a separate module, so
// that package xtraceid does not need gRPC.
//
// The interceptors read the ID from the call's context. otelgrpc's stats handler sets it, whatever
// the order of the options:
//
//	propagator := xtraceidgrpc.Propagator(xtraceid.New())
//	grpc.NewServer(
//		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithPropagators(propagator))),
//		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
//	)
package xtraceidgrpc

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// UnaryServerInterceptor returns an interceptor that puts the trace ID into the response's header
// metadata, under [xtraceid.DefaultHeader], even if the call fails. It replaces an ID that the
// handler sets. If the context has no trace ID, it adds nothing. It also calls [xtraceid.AddLink].
// List it before interceptors that may end a call themselves.
func UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
	) (any, error) {
		xtraceid.AddLink(ctx)
		return handler(withID(ctx), req)
	}
}

// StreamServerInterceptor returns an interceptor for streams, like [UnaryServerInterceptor]. The
// client receives the ID with the first message at the latest.
func StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(
		srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler,
	) error {
		xtraceid.AddLink(stream.Context())
		ctx := withID(stream.Context())
		if ctx != stream.Context() {
			stream = &serverStream{stream, ctx}
		}
		return handler(srv, stream)
	}
}

// withID puts the ID into the header and returns a context in which the handler cannot add
// another one.
func withID(ctx context.Context) context.Context {
	id := trace.SpanContextFromContext(ctx).TraceID()
	call := grpc.ServerTransportStreamFromContext(ctx)
	if !id.IsValid() || call == nil {
		return ctx
	}
	// It fails only if the header has already been sent; then only this metadata is lost.
	_ = call.SetHeader(metadata.Pairs(xtraceid.DefaultHeader, id.String()))
	return grpc.NewContextWithServerTransportStream(ctx, transportStream{call})
}

// transportStream receives the metadata that handlers set with grpc.SetHeader and grpc.SendHeader.
type transportStream struct{ grpc.ServerTransportStream }

func (s transportStream) SetHeader(md metadata.MD) error {
	return s.ServerTransportStream.SetHeader(others(md))
}

func (s transportStream) SendHeader(md metadata.MD) error {
	return s.ServerTransportStream.SendHeader(others(md))
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }

func (s *serverStream) SetHeader(md metadata.MD) error {
	return s.ServerStream.SetHeader(others(md))
}

func (s *serverStream) SendHeader(md metadata.MD) error {
	return s.ServerStream.SendHeader(others(md))
}

// others returns md without the trace ID.
func others(md metadata.MD) metadata.MD {
	kept := metadata.MD{}
	for name, values := range md {
		if !strings.EqualFold(name, xtraceid.DefaultHeader) {
			kept[name] = values
		}
	}
	return kept
}
