package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/traceflake/traceflake/lease"
)

// failed adds to err what was being done and, if an operator can fix the cause,
// how.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	hint := ""
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		err = fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
		hint = " (the user needs to read and write every key of " + s.prefix + ")"
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		err = fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
		hint = " (set the user and the password: " + urlForm + ")"
	case errors.Is(err, context.DeadlineExceeded):
		hint = " (no answer from " + s.endpoints + ")"
	case errors.Is(err, rpctypes.ErrNoSpace):
		hint = " (etcd's quota is used up: compact and defragment it, then disarm the alarm)"
	case errors.Is(err, rpctypes.ErrTooManyOps):
		hint = " (etcd runs with --max-txn-ops below 128)"
	}
	return fmt.Errorf("etcdstore: %s: %w%s", what, err, hint)
}
