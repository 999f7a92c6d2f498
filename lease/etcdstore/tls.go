package etcdstore

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"google.golang.org/grpc/credentials"
)

// secured are credentials that are read for each connection, since certificates are rotated.
type secured struct {
	credentials.TransportCredentials // when the store was opened
	files                            transport.TLSInfo
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
	conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	now, err := fromFiles(c.files)
	if err != nil {
		return nil, nil, err
	}
	return now.ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (c secured) Clone() credentials.TransportCredentials { return c }
