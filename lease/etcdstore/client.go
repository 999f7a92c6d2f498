package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"time"

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

// kv returns the client. The first call creates the store's own, since the server may be down
// before; with a password this contacts the server. A call that does so, or waits while another one
// does, ends with its own context.
func (s *objects) kv(ctx context.Context) (clientv3.KV, error) {
	if s.given != nil {
		return s.given, nil
	}
	var client *clientv3.Client
	select {
	case client = <-s.own:
		defer func() { s.own <- client }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if client != nil {
		return client, nil
	}
	config := s.config
	life, end := context.WithCancel(context.Background()) // of the client
	config.Context = life
	connected := context.AfterFunc(ctx, end)
	created, err := clientv3.New(config)
	if err != nil {
		end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	if !connected() { // the call was canceled
		return nil, errors.Join(ctx.Err(), created.Close())
	}
	client = created
	return client, nil
}

// remember keeps the error of a request that did not reach a member, such as a refused connection:
// etcd's client retries until the context is over, and then returns the context's error.
func (s *objects) remember(ctx context.Context, method string, request, response any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, response, conn, options...)
	why, apart := status.Convert(err).Message(), false
	for _, before := range []string{"latest balancer error: ", "connection error: desc = "} {
		if _, rest, ok := strings.Cut(why, before); ok {
			why, apart = rest, true
		}
	}
	// It reached a member, or gRPC closed the connection, since the member did not answer.
	if !apart || strings.Contains(why, net.ErrClosed.Error()) {
		why, apart = "", false
	}
	if s.cause.Store(&why); !apart {
		s.handshake.Store(nil)
	}
	return err
}

// Close ends the client, if it is the store's own.
func (s *objects) Close() error {
	if s.given != nil {
		return nil
	}
	client := <-s.own
	s.own <- nil
	if client == nil {
		return nil
	}
	return client.Close()
}
