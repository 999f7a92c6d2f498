// A program with a gRPC server and the interceptors of package xtraceidgrpc.
package main

import (
	"fmt"

	"google.golang.org/grpc"

	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

func main() {
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()))
	fmt.Println("a server with", len(server.GetServiceInfo()), "services")
}
