package cli

import (
	"context"
	"time"
)

// await returns the result of call, or the reason why ctx has ended: some clients obey a context
// only between requests. Then call goes on, and its result is lost.
func await[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
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
	case r := <-done: // its error is more specific
		return r.value, r.err
	case <-time.After(200 * time.Millisecond):
		var none T
		return none, context.Cause(ctx)
	}
}
