package engine

import (
	"context"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// List implements [stores.Store]. It lists the objects, reads every page whose
// data is not in the list, and writes nothing. The pages are not read at one
// moment unless the server lists their data.
func (s *Store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer s.failed(ctx, &err, "list")
	c, err := s.readConfig(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := s.objects.List(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.readAll(ctx, c, c.numbers(), listed)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		blocks = append(blocks, p.Blocks...)
	}
	return blocks, nil
}

// atOnce is how many requests a call sends concurrently.
const atOnce = 32

// each calls f for each page, several at once, and returns the results in the order of the pages,
// or the first error. After an error it starts no further calls. For a single page it starts no
// goroutine.
func each[T any](ctx context.Context, numbers []int,
	f func(ctx context.Context, number int) (T, error)) ([]T, error) {
	if len(numbers) == 1 {
		result, err := f(ctx, numbers[0])
		return []T{result}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	results, slots := make([]T, len(numbers)), make(chan struct{}, atOnce)
	for i, number := range numbers {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			result, err := f(ctx, number)
			if results[i] = result; err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return results, context.Cause(ctx)
}

// Time implements [stores.Store]. It sends one request.
func (s *Store) Time(ctx context.Context) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "time")
	o, err := s.objects.Read(ctx, configName)
	return o.Time, err
}
