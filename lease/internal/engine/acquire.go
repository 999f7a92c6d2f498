package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Acquire implements [lease.Store]. It sends three requests if the first page in the nonce's order
// has a free block and nobody else writes it at this moment. If no block is free it reads every
// page.
//
// Each nonce has its own order of the pages and takes a block on the first page that offers one. So
// a repeated request finds its block again, unless a block on an earlier page became free in
// between: then it is granted that block, too, and the other stays unused until its grant's end.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "acquire")
	if err := checkRequest(r); err != nil {
		return lease.Grant{}, err
	}
	c, err := s.current(ctx, r.Store)
	if err == nil {
		err = checkSecret(c.Removed, r)
	}
	if err != nil {
		return lease.Grant{}, err
	}
	r.TTL = min(r.TTL, c.LongestTTL)
	order := c.tryOrder(r.Nonce)
	for number := order[0]; ; {
		g, err := s.acquire(ctx, c, number, r)
		if !errors.Is(err, lease.ErrNoFreeNode) {
			return g, err
		}
		if number, err = s.search(ctx, c, r, order); err != nil {
			return lease.Grant{}, err
		}
	}
}

// acquire grants a block of one page. Errors: [lease.ErrNoFreeNode] if the page has none.
func (s *Store) acquire(ctx context.Context, c *config, number int,
	r lease.Request) (g lease.Grant, err error) {
	err = s.changePage(ctx, c, number, r.Nonce, func(p *page) (write bool, err error) {
		b := p.offer(r.Nonce)
		if b.Nonce == r.Nonce {
			g = b
			return false, nil
		}
		behind, err := checkClock(r.Now, p.now)
		if err != nil {
			return false, err
		}
		g, err = acquire(b, r)
		g.Behind = behind
		p.put(g)
		return true, err
	})
	return g, err
}

// tryOrder returns the numbers of the pages in an order that depends on
// the nonce alone, so that clients spread over the pages.
func (c *config) tryOrder(nonce string) []int {
	order := c.numbers()
	seed := [nonceLen]byte([]byte(nonce)) // its length was checked
	rand.New(rand.NewChaCha8(seed)).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	return order
}

// offer returns the block of the page that has the nonce, or otherwise the one whose grant ends
// first.
func (p *page) offer(nonce string) (best lease.Grant) {
	for i := range uint32(p.nodes.Blocks()) {
		b := p.get(p.nodes.First + i*p.nodes.BlockSize)
		if b.Nonce == nonce {
			return b
		}
		if i == 0 || b.End.Before(best.End) {
			best = b
		}
	}
	return best
}

// search returns the number of the first page in the order that offers a block. It writes nothing.
// It may miss a block that is released after its page was read.
func (s *Store) search(ctx context.Context, c *config, r lease.Request, order []int) (int, error) {
	for size := 1; len(order) > 0; size = min(2*size, atOnce) {
		size = min(size, len(order))
		found, err := s.readAll(ctx, c, order[:size], nil)
		if err != nil {
			return 0, err
		}
		for _, p := range found {
			if b := p.offer(r.Nonce); b.Nonce == r.Nonce || b.Free(r.Now) {
				return p.Number, nil
			}
		}
		order = order[size:]
	}
	return 0, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, c.Blocks())
}

// readAll returns pages, in the same order. It does not read those whose data
// was listed.
func (s *Store) readAll(ctx context.Context, c *config, numbers []int,
	listed map[string]driver.Object) ([]*page, error) {
	pages := make([]*page, len(numbers))
	return pages, each(ctx, numbers, func(ctx context.Context, i, number int) (err error) {
		if o := listed[pageName(number)]; o.Data != nil {
			pages[i], err = parse(c, number, o)
		} else {
			pages[i], err = s.read(ctx, c, number)
		}
		return err
	})
}
