package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// kv returns the client. Creating a client with a password contacts the server. A call that does
// so, or waits while another one does, ends with its own context.
func (s *objects) kv(ctx context.Context) (clientv3.KV, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.client != nil {
		return s.client, nil
	}
	config := s.config
	reconnect := backoff.DefaultConfig
	reconnect.MaxDelay = 5 * time.Second // by default two minutes: leases would end meanwhile
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(s.remember),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect,
			MinConnectTimeout: config.DialTimeout}),
		grpc.WithTransportCredentials(shaken{s.credentials, s}))
	life, end := context.WithCancel(context.Background()) // of the client
	config.Context = life
	connected := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if err != nil {
		end()
		return nil, cmp.Or(ctx.Err(), err)
	}
	if !connected() { // the call was canceled
		return nil, errors.Join(ctx.Err(), client.Close())
	}
	s.client, s.close = client, client.Close
	return client, nil
}

// remember keeps the error of a request that did not reach a member, such as a refused connection:
// etcd's client retries until the context is over, and then returns the context's error.
func (s *objects) remember(ctx context.Context, method string, request, response any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, response, conn, options...)
	// "" if it reached one
	_, why, apart := strings.Cut(status.Convert(err).Message(), "connection error: desc = ")
	if s.cause.Store(&why); !apart {
		s.handshake.Store(nil)
	}
	return err
}

// shaken are credentials that remember the last handshake: gRPC returns errors of connections as
// texts only.
type shaken struct {
	credentials.TransportCredentials
	s *objects
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c shaken) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, conn)
	c.s.handshake.Store(&err)
	return secured, info, err
}

// Clone implements [credentials.TransportCredentials].
func (c shaken) Clone() credentials.TransportCredentials { return c }

// Close ends the client, if it is the store's own.
func (s *objects) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	end := s.close
	if s.close = nil; end == nil {
		return nil
	}
	return end()
}
