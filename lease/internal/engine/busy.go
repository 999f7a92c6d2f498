package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

const (
	// busyTries is how often a request is sent: its context may have no deadline.
	busyTries = 10
	// The first pause is up to minBusy, the next one up to twice as long, and so on to maxBusy.
	minBusy = 100 * time.Millisecond
	maxBusy = 8 * time.Second
)

// whileBusy sends a request until the server is not busy, for as long as the context allows.
func whileBusy[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	for try := 1; ; try++ {
		answer, err := request(ctx)
		busy, ok := errors.AsType[*driver.TryAgain](err)
		if !ok || try == busyTries {
			return answer, err
		}
		wait := max(rand.N(min(minBusy<<(try-1), maxBusy)), busy.After+rand.N(busy.After/2+1))
		if over := sleep(ctx, wait); over != nil {
			return answer, fmt.Errorf("%w; retry in %s: %w", err, wait.Round(time.Millisecond),
				over)
		}
	}
}

// sleep returns an error if the context ends first, at once if its deadline is earlier.
func sleep(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
