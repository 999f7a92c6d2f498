package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// failed adds what an operator can do to err.
func (s *objects) failed(err error) error {
	why := s.cause.Load()
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrAuthFailed),
		errors.Is(err, rpctypes.ErrUserEmpty):
		return &lease.Error{Err: fmt.Errorf("%w: %w", lease.ErrMisconfigured, err),
			Fix: "set the user and the password: " + urlForm + "; let the user read and write " +
				"every key of " + s.prefix}
	case errors.Is(err, rpctypes.ErrNoSpace):
		return &lease.Error{Err: err,
			Fix: "compact and defragment etcd, whose quota is used up, and disarm the alarm"}
	case errors.Is(err, context.DeadlineExceeded) && why != nil && *why != "":
		return &lease.Error{Err: fmt.Errorf("%w: %s", err, *why), Fix: s.unconnected()}
	}
	return err
}

// unconnected returns what an operator can do if no member is reached.
func (s *objects) unconnected() string {
	handshake := s.handshake.Load()
	if handshake == nil {
		return driver.FixNothingThere
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](*handshake); untrusted {
		return driver.FixCertificate
	}
	if *handshake != nil {
		return driver.FixTLS
	}
	return driver.FixOtherServer
}
