package etcdstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// configure returns the configuration of the store's own client, without its endpoints.
func (s *objects) configure(c credentials.TransportCredentials) clientv3.Config {
	const dialTimeout = 5 * time.Second
	reconnect := backoff.DefaultConfig
	reconnect.MaxDelay = 5 * time.Second // by default two minutes: leases would end meanwhile
	return clientv3.Config{
		DialTimeout: dialTimeout,
		// detects a member that vanished without closing the connection
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // errors are returned
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(s.remember),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect,
				MinConnectTimeout: dialTimeout}),
			grpc.WithTransportCredentials(c),
		},
	}
}

// connect creates the store's own client, without a request: the server may be down. With a
// password etcd's client authenticates at once; it is told that the server needs none, and
// authenticates when the server wants it to.
func (s *objects) connect(config clientv3.Config) (err error) {
	s.connecting = true
	s.own, err = clientv3.New(config)
	s.connecting = false
	s.kv = s.own
	return err
}

// remember keeps the error of a request that did not reach a member, such as a refused connection:
// etcd's client retries until the context is over, and then returns the context's error.
func (s *objects) remember(ctx context.Context, method string, request, response any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if s.connecting {
		return rpctypes.ErrGRPCAuthNotEnabled
	}
	err := invoke(ctx, method, request, response, conn, options...)
	message, why := status.Convert(err).Message(), ""
	for _, before := range []string{"latest balancer error: ", "connection error: desc = "} {
		if _, rest, ok := strings.Cut(message, before); ok {
			message, why = rest, rest
		}
	}
	// It reached a member, or gRPC closed the connection, since the member did not answer.
	if strings.Contains(why, net.ErrClosed.Error()) {
		why = ""
	}
	s.cause.Store(&why)
	return err
}

// Close ends the client, if it is the store's own.
func (s *objects) Close() error {
	if s.own == nil {
		return nil
	}
	if err := s.own.Close(); !errors.Is(err, context.Canceled) { // it was closed before
		return err
	}
	return nil
}
