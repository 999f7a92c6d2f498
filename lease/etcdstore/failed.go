package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/traceflake/traceflake/lease"
)

// failed adds what an operator can do to err.
func (s *objects) failed(err error) error {
	var fix string
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		fix = "let the user read and write every key of " + s.prefix
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		fix = "set the user and the password: " + urlForm
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w (no response from %s)", err, strings.Join(s.config.Endpoints, ", "))
		if why := s.cause.Load(); why != nil && *why != "" {
			err = fmt.Errorf("%w: %s", err, *why)
		}
		return err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return &lease.Error{Err: err,
			Fix: "compact and defragment etcd, whose quota is used up, and disarm the alarm"}
	default:
		return err
	}
	return &lease.Error{Err: fmt.Errorf("%w: %w", lease.ErrMisconfigured, err), Fix: fix}
}
