package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// failed adds to err what was being done and, if an operator can fix the cause,
// how.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	hint := ""
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		hint = " (the user needs to read and write every key of the prefix)"
	case errors.Is(err, rpctypes.ErrNoSpace):
		hint = " (etcd's quota is used up: compact and defragment it, then disarm the alarm)"
	case errors.Is(err, rpctypes.ErrTooManyOps):
		hint = " (etcd runs with --max-txn-ops below 128)"
	}
	return fmt.Errorf("etcdstore: %s: %w%s", what, err, hint)
}
