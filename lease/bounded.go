package lease

import (
	"context"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// callTimeout bounds one call to the store.
const callTimeout = 5 * time.Second

// bounded is the store as a Keeper uses it: each call is bounded and counted.
type bounded struct {
	Store
	counts *counts
}

func call[T any](ctx context.Context, s bounded, operation string,
	do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	result, err := do(ctx)
	s.counts.add(series{operation: operation, outcome: outcome(err)})
	return result, err
}

// Describe returns [ErrWrongSecret] if the secret is not registered with the store: the secret then
// belongs to another store, which may grant the same nodes.
func (s bounded) Describe(ctx context.Context, c *randflake.Codec) (Description, error) {
	return call(ctx, s, "describe", func(ctx context.Context) (Description, error) {
		d, err := s.Store.Describe(ctx)
		if err == nil && len(d.Secrets) > 0 &&
			!slices.Contains(d.Secrets, d.Fingerprint(c)) {
			err = ErrWrongSecret
		}
		return d, err
	})
}

func (s bounded) Acquire(ctx context.Context, r Request) (Grant, error) {
	return call(ctx, s, "acquire",
		func(ctx context.Context) (Grant, error) { return s.Store.Acquire(ctx, r) })
}

func (s bounded) Renew(ctx context.Context, g Grant, r Request) (Grant, error) {
	return call(ctx, s, "renew",
		func(ctx context.Context) (Grant, error) { return s.Store.Renew(ctx, g, r) })
}

func (s bounded) Get(ctx context.Context, g Grant) (Grant, error) {
	return call(ctx, s, "get",
		func(ctx context.Context) (Grant, error) { return s.Store.Get(ctx, g) })
}

func (s bounded) Release(ctx context.Context, g Grant, nonce string, unused time.Time) error {
	_, err := call(ctx, s, "release", func(ctx context.Context) (none struct{}, err error) {
		return none, s.Store.Release(ctx, g, nonce, unused)
	})
	return err
}
