package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"google.golang.org/grpc/credentials"
)

// files are credentials that are read for each connection: certificates are rotated.
type files struct {
	credentials.TransportCredentials
	info transport.TLSInfo
}

func newFiles(info transport.TLSInfo) (files, error) {
	config, err := clientConfig(info)
	return files{credentials.NewTLS(config), info}, err
}

func clientConfig(info transport.TLSInfo) (*tls.Config, error) {
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if pool := config.RootCAs; pool != nil && pool.Equal(x509.NewCertPool()) {
		return nil, fmt.Errorf("no certificate in %s", info.TrustedCAFile)
	}
	return config, nil
}

// ClientHandshake implements [credentials.TransportCredentials].
func (f files) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	config, err := clientConfig(f.info)
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (f files) Clone() credentials.TransportCredentials { return f }
