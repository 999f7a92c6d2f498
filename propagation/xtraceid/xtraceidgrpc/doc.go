// Package xtraceidgrpc puts the trace ID into the metadata of gRPC responses,
// as xtraceid.ResponseHandler puts it into the headers of HTTP responses. It is
// a module of its own, so that package xtraceid does not need gRPC.
//
// The interceptors take the ID from the call's context. otelgrpc's stats
// handler puts it there, whatever the order of the options:
//
//	grpc.NewServer(
//		grpc.StatsHandler(otelgrpc.NewServerHandler()),
//		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
//		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
//	)
//
// For the way in, otelgrpc.WithPropagators takes xtraceid's propagator like any
// other.
package xtraceidgrpc
