package etcdstore

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"google.golang.org/grpc/credentials"
)

// secured are credentials that are read for each connection, since certificates are rotated. They
// keep the result of the last handshake: gRPC returns errors of connections as texts only.
type secured struct {
	credentials.TransportCredentials // when the store was opened
	read                             func() (credentials.TransportCredentials, error)
	last                             *atomic.Pointer[error]
}

// fromFiles returns the credentials that some files contain.
func fromFiles(info transport.TLSInfo) (credentials.TransportCredentials, error) {
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if pool := config.RootCAs; pool != nil && pool.Equal(x509.NewCertPool()) {
		return nil, fmt.Errorf("no certificate in %s", info.TrustedCAFile)
	}
	return credentials.NewTLS(config), nil
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c secured) ClientHandshake(ctx context.Context, authority string,
	conn net.Conn) (_ net.Conn, info credentials.AuthInfo, err error) {
	now, err := c.read()
	if err == nil {
		conn, info, err = now.ClientHandshake(ctx, authority, conn)
	}
	c.last.Store(&err)
	return conn, info, err
}

// Clone implements [credentials.TransportCredentials].
func (c secured) Clone() credentials.TransportCredentials { return c }
