package pages

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// List implements [lease.Admin]. It lists the objects, reads every page whose
// data is not in the list, and writes nothing. The pages are not read at one
// moment unless the server lists their data.
func (s *Store) List(ctx context.Context) ([]lease.Grant, error) {
	blocks, err := s.list(ctx)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	return blocks, nil
}

func (s *Store) list(ctx context.Context) ([]lease.Grant, error) {
	sh, err := s.setup(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := s.server.List(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.readAll(ctx, sh, sh.numbers(), listed)
	if err != nil {
		return nil, err
	}
	var blocks []lease.Grant
	for _, p := range all {
		for _, b := range p.Blocks {
			blocks = append(blocks, lease.Grant(p.get(b.Node)))
		}
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It reads and writes every page.
func (s *Store) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	if err := driver.CheckRaise(until); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", s.layout.Name, err)
	}
	until, err := s.raise(ctx, until)
	if err != nil {
		return time.Time{}, s.failed(ctx, "raise", err)
	}
	return until, nil
}

func (s *Store) raise(ctx context.Context, until time.Time) (time.Time, error) {
	c, err := s.amend(ctx, func(c *config, now time.Time) bool {
		if now = latest(now); now.IsZero() {
			now = time.Now()
		}
		was := c.Raised
		c.Raised = driver.RaiseTo(c.description(), until, now)
		return !c.Raised.Equal(was)
	})
	if err != nil {
		return until, err
	}
	sh := s.shape.Load()
	numbers := sh.numbers()
	return c.Raised, s.each(ctx, len(numbers), func(ctx context.Context, i int) error {
		return s.update(ctx, sh, numbers[i], "", func(p *page, _ bool) (bool, error) { return p.raise(c.Raised), nil })
	})
}

// raise raises every block of the page. It reports whether there was one to raise.
func (p *page) raise(until time.Time) (raised bool) {
	for i := range p.nodes.Blocks() {
		before := p.get(p.nodes.Block(i).Node)
		if after := before.Raise(until); after != before {
			p.put(after)
			raised = true
		}
	}
	return raised
}

// atOnce is how many requests a call makes at once.
const atOnce = 32

// each calls f for 0 to n-1, several at once, and returns the first error, after which it
// makes no further calls.
func (s *Store) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	if s.layout.OneAtATime {
		slots = make(chan struct{}, 1)
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Time implements [lease.Admin]. It is one request.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	o, err := s.server.Read(ctx, configName)
	if err != nil {
		return time.Time{}, s.failed(ctx, "time", err)
	}
	return o.Time, nil
}
