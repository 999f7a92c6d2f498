package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Busy is the error of a request that an overloaded [Objects] refused without doing anything. The
// store repeats the request.
type Busy struct {
	Err error
	// After is the server's minimum wait before the request is repeated.
	After time.Duration
}

func (b *Busy) Error() string { return fmt.Sprint(b.Err) }
func (b *Busy) Unwrap() error { return b.Err }

const (
	// busyTries is how often a request is sent: its context may have no deadline.
	busyTries = 10
	// The first pause is up to minBusy, the next one up to twice as long, and so on to maxBusy.
	minBusy = 100 * time.Millisecond
	maxBusy = 8 * time.Second
)

// waiter repeats requests while the server is busy, and verifies that the server stored what was
// sent.
type waiter struct{ Objects }

func (w waiter) Read(ctx context.Context, name string) (Object, error) {
	return again(ctx, func() (Object, error) { return w.Objects.Read(ctx, name) })
}

func (w waiter) Write(ctx context.Context, name string, data []byte, version string) (Object,
	error) {
	o, err := again(ctx,
		func() (Object, error) { return w.Objects.Write(ctx, name, data, version) })
	if err == nil &&
		(o.Version == "" || o.Version == version || o.Data != nil && !bytes.Equal(o.Data, data)) {
		err = fmt.Errorf("%s: %w", name, ErrAltered)
	}
	return o, err
}

func (w waiter) List(ctx context.Context) (map[string]Object, error) {
	return again(ctx, func() (map[string]Object, error) { return w.Objects.List(ctx) })
}

func again[T any](ctx context.Context, request func() (T, error)) (answer T, err error) {
	for try := 0; ; try++ {
		answer, err = request()
		busy := (*Busy)(nil)
		if !errors.As(err, &busy) || try == busyTries-1 {
			return answer, err
		}
		wait := max(rand.N(min(minBusy<<try, maxBusy)), busy.After+rand.N(busy.After/2+1))
		if over := sleep(ctx, wait); over != nil {
			return answer,
				fmt.Errorf("%w; retry in %s: %w", err, wait.Round(time.Millisecond), over)
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
