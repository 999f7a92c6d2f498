package engine

import (
	"context"
	"sync"
	"sync/atomic"
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

// each calls f for each page and its index, several at once, and returns the first error. After an
// error it starts no further calls. For a single page it starts no goroutine.
func each(ctx context.Context, numbers []int,
	f func(ctx context.Context, i, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(begun.Add(1)) - 1
			if i >= len(numbers) {
				return
			}
			if err := f(ctx, i, numbers[i]); err != nil {
				cancel(err)
			}
		}
	}
	var others sync.WaitGroup
	for range min(len(numbers), atOnce) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return context.Cause(ctx)
}

// Time implements [stores.Store]. It sends one request.
func (s *Store) Time(ctx context.Context) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "time")
	o, err := s.objects.Read(ctx, configName)
	return o.Time, err
}
