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
