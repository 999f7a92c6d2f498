package driver

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Acquire implements [lease.Store]. It is two requests if the first page in the
// nonce's order has a free block and no one else writes it at this moment.
// Without a free block it reads every page.
//
// Each nonce has its own order of the pages and takes a block on the first one
// that offers one. So a request that is repeated finds its block again, unless a
// block on an earlier page became free in between: then it is granted that one
// too, and the other is unused until its grant's end.
func (s *store) Acquire(ctx context.Context, r lease.Request) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "acquire")
	if err := CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, err
	}
	c, err := s.setup(ctx)
	if err != nil {
		return lease.Grant{}, err
	}
	r = Shorten(r, c.Description)
	order := c.order(r.Nonce)
	for number := order[0]; ; {
		var b Block
		full := false
		err := s.updatePage(ctx, c, number, r.Nonce, func(p *page, repeated bool) (bool, error) {
			var ok bool
			b, ok = p.offer(r)
			switch full = !ok; {
			case b.Nonce == r.Nonce:
				return false, nil
			case repeated: // and somebody else has the block by now
				return false, errRepeated
			case full:
				return false, nil
			}
			if err := CheckRequest(r, latest(p.now)); err != nil {
				return false, err
			}
			if b, err = b.Acquire(r); err != nil {
				return false, err
			}
			p.put(b)
			return true, nil
		})
		if err != nil {
			return lease.Grant{}, err
		}
		if !full {
			return lease.Grant(b), nil
		}
		if number, err = s.search(ctx, c, r, order); err != nil {
			return lease.Grant{}, err
		}
	}
}

// order returns the numbers of the pages in an order that depends on
// the nonce alone, so that clients spread over the pages.
func (c *config) order(nonce string) []int {
	half := func(text string) uint64 {
		n, _ := strconv.ParseUint(text, 16, 64) // checked by CheckRequest
		return n
	}
	order := c.numbers()
	rand.New(rand.NewPCG(half(nonce[:16]), half(nonce[16:]))).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	return order
}

// offer returns the block of the page that has the request's nonce, or
// otherwise the one that has been free longest.
func (p *page) offer(r lease.Request) (best Block, ok bool) {
	for i := range p.nodes.Blocks() {
		b := p.get(p.nodes.Block(i).Node)
		if b.Nonce == r.Nonce {
			return b, true
		}
		if b.Free(r.Now) && (!ok || b.End.Before(best.End)) {
			best, ok = b, true
		}
	}
	return best, ok
}

// search returns the number of the first page in the order that offers a block. It writes nothing.
// It may miss a block that is released after its page was read.
func (s *store) search(ctx context.Context, c *config, r lease.Request, order []int) (int, error) {
	var taken []Block
	for size := 1; len(order) > 0; size = min(2*size, atOnce) {
		size = min(size, len(order))
		found, err := s.readAll(ctx, c, order[:size], nil)
		if err != nil {
			return 0, err
		}
		for _, p := range found {
			if _, ok := p.offer(r); ok {
				return p.Number, nil
			}
			for i := range p.nodes.Blocks() {
				taken = append(taken, p.get(p.nodes.Block(i).Node))
			}
		}
		order = order[size:]
	}
	return 0, NoneFree(taken, r.Now)
}

// readAll returns pages, in the same order. It does not read those whose data
// was listed.
func (s *store) readAll(ctx context.Context, c *config, numbers []int, listed map[string]Object) ([]*page, error) {
	all := make([]*page, len(numbers))
	err := s.each(ctx, numbers, func(ctx context.Context, i, number int) (err error) {
		if o := listed[pageName(number)]; o.Data != nil {
			all[i], err = parse(c, number, o)
		} else {
			all[i], err = s.read(ctx, c, number)
		}
		return err
	})
	return all, err
}
