package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/traceflake/traceflake/lease"
)

// failed adds to err how an operator can fix the cause.
func (s *objects) failed(err error) error {
	var hint string
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		hint = "the user needs to read and write every key of " + s.prefix
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		hint = "set the user and the password: " + urlForm
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w (no response from %s)", err, strings.Join(s.config.Endpoints, ", "))
		if why := s.cause.Load(); why != nil && *why != "" {
			err = fmt.Errorf("%w: %s", err, *why)
		}
		return err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf(
			"%w (etcd's quota is used up: compact and defragment it, then disarm the alarm)", err)
	default:
		return err
	}
	return fmt.Errorf("%w: %w (%s)", lease.ErrMisconfigured, err, hint)
}
