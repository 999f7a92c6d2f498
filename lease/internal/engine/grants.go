package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// A grant or a renewal is one conditional write of one page: if the page has changed meanwhile, it
// is read again. A write whose outcome is unknown is never repeated: the caller finds out by the
// nonce. The write compares the place where the server can. In any case the description is read
// after it, see confirm.

// Acquire implements [lease.Store]. It sends three requests, and one more for the first lease, if
// the first page in the nonce's order has a free block and nobody else writes it at this moment. If
// no block is free it reads every page.
//
// Each nonce has its own order of the pages and takes a block on the first page that offers one. So
// a repeated request finds its block again, unless a block on an earlier page became free in
// between: then it is granted that block, too, and the other stays unused until its grant's end.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (g lease.Grant, err error) {
	defer s.failed(ctx, &err, "acquire")
	if err := checkRequest(r); err != nil {
		return g, err
	}
	c, err := s.about(ctx, r.Store)
	if err != nil {
		return g, err
	}
	r.TTL = min(r.TTL, c.LongestTTL)
	rule := func(p *page) (lease.Grant, error) {
		b := p.offer(r.Nonce)
		if b.Nonce == r.Nonce {
			return b, nil
		}
		return acquire(b, r, p.now)
	}
	order := c.tryOrder(r.Nonce)
	for number := order[0]; ; {
		g, err := s.change(ctx, c, number, r.Nonce, rule)
		if !errors.Is(err, lease.ErrNoFreeNode) {
			return g, err
		}
		if number, err = s.search(ctx, c, r, order); err != nil {
			return lease.Grant{}, cmp.Or(s.confirm(ctx, c, nil), err) // elsewhere it says nothing
		}
	}
}

// Renew implements [lease.Store]. It sends three requests, or more if others write the page at this
// moment.
func (s *Store) Renew(ctx context.Context, g lease.Grant,
	r lease.Request) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "renew node %d", g.Node)
	c, err := s.aboutBlock(ctx, g)
	if err := cmp.Or(err, checkRequest(r)); err != nil {
		return lease.Grant{}, err
	}
	r.TTL = min(r.TTL, c.LongestTTL)
	return s.change(ctx, c, c.page(g.Node), r.Nonce, func(p *page) (lease.Grant, error) {
		return renew(*p.get(g.Node), g, r, p.now)
	})
}

// Get implements [lease.Store]. It sends two requests.
func (s *Store) Get(ctx context.Context, g lease.Grant) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "get node %d", g.Node)
	c, err := s.aboutBlock(ctx, g)
	if err != nil {
		return lease.Grant{}, err
	}
	p, err := s.read(ctx, c, c.page(g.Node))
	if err := s.confirm(ctx, c, err); err != nil {
		return lease.Grant{}, err
	}
	return *p.get(g.Node), nil
}

// aboutBlock returns the description of the history to which g belongs, if g is one of its blocks.
func (s *Store) aboutBlock(ctx context.Context, g lease.Grant) (*config, error) {
	c, err := s.about(ctx, g.Store)
	return c, cmp.Or(err, checkBlock(c.Description, g.Node))
}

// confirm is called after pages of a history were read or written, with the error of that: it
// returns an error unless the description shows now that the history is complete, and here. Some
// servers cannot compare the place when they write a page, and none compares the description: a
// page alone may have been set back, or the client may have reached a copy.
//
// It also finds the cause if a page does not fit the history.
func (s *Store) confirm(ctx context.Context, c *config, err error) error {
	if err != nil && !errors.Is(err, lease.ErrContradicted) && !errors.Is(err, lease.ErrMoved) {
		return err
	}
	now, failed := s.describe(ctx)
	return cmp.Or(failed, now.is(c.ID), err)
}

// updateTries is how often a change is tried while others write the same object: a context may have
// no deadline. All tries together take about 10 s.
const updateTries = 50

// update changes a page in two steps, a read and a conditional write, which are repeated while
// other clients write in between. change returns the new data, or nil if nothing is to be written;
// again is set if a write was refused.
func (s *Store) update(ctx context.Context, c *config, number int,
	change func(o driver.Object, again bool) ([]byte, error)) error {
	name := pageName(number)
	for tries := 1; ; tries++ {
		o, err := s.objects.Read(ctx, name)
		if err != nil {
			return err
		}
		data, err := change(o, tries > 1)
		if err != nil || data == nil {
			return err
		}
		_, err = s.objects.Write(ctx, name, data, o.Version, c.Place)
		switch {
		case !errors.Is(err, driver.ErrChanged):
			return err
		case tries == updateTries:
			return fmt.Errorf("%s: another client wrote it first in each of %d attempts", name,
				updateTries)
		}
		pause := min(time.Millisecond<<min(tries, 10), 500*time.Millisecond)
		if err := sleep(ctx, rand.N(pause)); err != nil {
			return err
		}
	}
}

// change changes a block of a page, under a nonce, and confirms it. rule returns the block's next
// state, or the present one.
//
// If a write was refused and the page then has the nonce, only a call that finds its grant
// succeeds. Either something between here and the server repeated the write, and the first one was
// stored; or a copy of this process wrote with the same nonce. At most one of two copies may
// succeed, and this process cannot know which it is.
func (s *Store) change(ctx context.Context, c *config, number int, nonce string,
	rule func(p *page) (lease.Grant, error)) (g lease.Grant, err error) {
	var p *page
	before := s.seen.before(c, number)
	err = s.update(ctx, c, number, func(o driver.Object, again bool) (data []byte, err error) {
		if p, err = s.parse(c, number, o, before); err != nil {
			return nil, err
		}
		switch g, err = rule(p); {
		case err == nil && g == *p.get(g.Node):
			return nil, nil
		case again && p.offer(nonce).Nonce == nonce:
			return nil, errRepeated
		case err != nil:
			return nil, err
		}
		*p.get(g.Node) = g
		return seal(p.pageHeader, p.granted()...), nil
	})
	if err == nil {
		err = s.seen.add(p, before)
	}
	if err := s.confirm(ctx, c, err); err != nil {
		return lease.Grant{}, err
	}
	return g, nil
}

var errRepeated = errors.New("a write was refused, and may have been stored: " +
	"the network repeated it, or a copy of this process has the same nonce")

// parse reads a page of a history, before which its client had seen a number of its writes.
func (s *Store) parse(c *config, number int, o driver.Object, before uint64) (*page, error) {
	p, err := parse(c, number, o)
	if err == nil {
		err = s.seen.add(p, before)
	}
	return p, err
}

func (s *Store) read(ctx context.Context, c *config, number int) (*page, error) {
	before := s.seen.before(c, number)
	o, err := s.objects.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return s.parse(c, number, o, before)
}

// readAll returns pages, in the same order.
func (s *Store) readAll(ctx context.Context, c *config, numbers []int) ([]*page, error) {
	pages := make([]*page, len(numbers))
	return pages, each(ctx, s.atOnce, len(numbers),
		func(ctx context.Context, i int) (err error) {
			pages[i], err = s.read(ctx, c, numbers[i])
			return err
		})
}

// tryOrder returns the numbers of the pages in an order that depends on the nonce alone, so that
// clients spread over the pages.
func (c *config) tryOrder(nonce string) []int {
	seed := [nonceLen]byte([]byte(nonce)) // its length was checked
	return rand.New(rand.NewChaCha8(seed)).Perm(c.pages())
}

// search returns the number of the first page in the order that offers a block. It writes nothing.
func (s *Store) search(ctx context.Context, c *config, r lease.Request, order []int) (int, error) {
	for size := 1; len(order) > 0; size = min(2*size, s.atOnce) {
		size = min(size, len(order))
		found, err := s.readAll(ctx, c, order[:size])
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
