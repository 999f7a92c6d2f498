// Package await ends the wait for calls that may hang.
package await

import (
	"context"
	"time"
)

// Call returns the result of call, or the reason why ctx has ended: some calls obey a context only
// at times, or cannot be ended. Then call goes on, and its result is lost, unless it returns within
// the grace period: its own error is more specific.
func Call[T any](ctx context.Context, grace time.Duration,
	call func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(grace):
		var none T
		return none, context.Cause(ctx)
	}
}
