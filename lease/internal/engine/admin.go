package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
)

// List implements [stores.Store]. It lists the objects, reads every page whose
// data is not in the list, and writes nothing. The pages are not read at one
// moment unless the server lists their data.
func (s *Store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer s.failed(ctx, &err, "list")
	c, err := s.setup(ctx)
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

// Raise implements [stores.Store]. It marks the store as incomplete, reads and writes every page,
// and marks it as complete again. No client acquires a block in between, even if the raise is
// interrupted, until it is repeated.
func (s *Store) Raise(ctx context.Context, until time.Time) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "raise")
	return s.raise(ctx, until, false)
}

// MovedHere implements [stores.Store]. The mark and the place are one write.
func (s *Store) MovedHere(ctx context.Context, until time.Time) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "raise a store that was moved")
	return s.raise(ctx, until, true)
}

func (s *Store) raise(ctx context.Context, until time.Time, movedHere bool) (time.Time, error) {
	if err := checkRaise(until); err != nil {
		return time.Time{}, err
	}
	for e := s.edit(configName); ; {
		c, err := e.readConfig(ctx, movedHere)
		if err != nil {
			return time.Time{}, err
		}
		now := latest(e.read.Time)
		if now.IsZero() {
			now = time.Now()
		}
		to := protocol.RaiseTo(c.Raised, until, now)
		begun := to.Equal(c.Raised) && c.here(e.read.Place) == nil
		if begun {
			if err := s.raisePages(ctx, c); err != nil || !c.Raising {
				return to, err
			}
		}
		c.Raised, c.Raising, c.Place = to, !begun, cmp.Or(e.read.Place, c.Place)
		if done, err := e.writeConfig(ctx, c); err != nil || done && begun {
			return to, err
		}
	}
}

func (s *Store) raisePages(ctx context.Context, c *config) error {
	_, err := each(ctx, c.numbers(),
		func(ctx context.Context, number int) (none struct{}, _ error) {
			return none, s.changePage(ctx, c, number, "",
				func(p *page, _ error) (bool, error) { return p.raise(c.Raised), nil })
		})
	return err
}

// raise raises every block of the page. It reports whether any block changed.
func (p *page) raise(until time.Time) (raised bool) {
	for i := range p.nodes.Blocks() {
		before := p.get(p.nodes.Block(i).Node)
		if after := raise(before, until); after != before {
			p.put(after)
			raised = true
		}
	}
	return raised
}

// atOnce is how many requests a call sends concurrently.
const atOnce = 32

// each calls f for each page, several at once, and returns the results in the order of the pages,
// or the first error. After an error it starts no further calls.
func each[T any](ctx context.Context, numbers []int,
	f func(ctx context.Context, number int) (T, error)) ([]T, error) {
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
