package driver

import (
	"context"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// List implements [lease.Admin]. It lists the objects, reads every page whose
// data is not in the list, and writes nothing. The pages are not read at one
// moment unless the server lists their data.
func (s *store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer s.failed(ctx, &err, "list")
	c, err := s.setup(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := s.server.List(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.readAll(ctx, c, c.numbers(), listed)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		for _, b := range p.Blocks {
			blocks = append(blocks, lease.Grant(b))
		}
	}
	return blocks, nil
}

// Raise implements [lease.Admin]. It reads and writes every page.
func (s *store) Raise(ctx context.Context, until time.Time) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "raise")
	if err := CheckRaise(until); err != nil {
		return time.Time{}, err
	}
	c, err := s.amend(ctx, func(c *config, now time.Time) bool {
		if now = latest(now); now.IsZero() {
			now = time.Now()
		}
		was := c.Raised
		c.Raised = RaiseTo(c.Description, until, now)
		return !c.Raised.Equal(was)
	})
	if err != nil {
		return time.Time{}, err
	}
	return c.Raised, s.each(ctx, c.numbers(), func(ctx context.Context, _, number int) error {
		return s.updatePage(ctx, c, number, "", func(p *page, _ bool) (bool, error) { return p.raise(c.Raised), nil })
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

// each calls f with the index and the number of each page, several at once, and returns the first
// error, after which it makes no further calls.
func (s *store) each(ctx context.Context, numbers []int, f func(ctx context.Context, i, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, number := range numbers {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i, number); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Time implements [lease.Admin]. It is one request.
func (s *store) Time(ctx context.Context) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "time")
	o, err := s.server.Read(ctx, configName)
	return o.Time, err
}
