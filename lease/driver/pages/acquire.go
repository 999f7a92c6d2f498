package pages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Acquire implements [lease.Store]. It is two requests if the first page in the
// nonce's order has a free block and no one else writes it at this moment.
// Without a free block it reads every page, and lists them once.
//
// Each nonce has its own order of the pages and takes a block on the first one
// that offers one. So a request that is repeated finds its block again, unless a
// block on an earlier page became free in between: then it is granted that one
// too, and the other is unused until its grant's end.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("%s: %w", s.layout.Name, err)
	}
	sh, err := s.setup(ctx)
	var g lease.Grant
	if err == nil {
		g, err = s.acquire(ctx, sh, r)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	return g, nil
}

func (s *Store) acquire(ctx context.Context, sh shape, r lease.Request) (lease.Grant, error) {
	order := sh.order(r.Nonce)
	p, err := s.read(ctx, sh, order[0])
	for try := 0; err == nil; try++ {
		b, ok := p.offer(sh, r)
		if !ok {
			if p, err = s.search(ctx, sh, r, order); err != nil {
				break
			}
			b, _ = p.offer(sh, r)
		}
		if b.Nonce == r.Nonce {
			return b.Grant(), nil
		}
		if err = driver.CheckRequest(r, p.latest()); err != nil {
			break
		}
		if p.version == "" {
			now, err := s.configure(ctx, sh)
			if err != nil {
				return lease.Grant{}, err
			}
			if now != sh {
				return s.acquire(ctx, now, r) // which is known from now on
			}
		}
		if b, err = b.Acquire(r); err != nil {
			break
		}
		writes := p.Writes
		p.put(b)
		if p, err = s.write(ctx, sh, p, r.Nonce, try); p == nil {
			return granted(b, err)
		}
		if again, _ := p.offer(sh, r); again.Nonce != r.Nonce && slices.Contains(p.since(writes), r.Nonce) {
			err = errRepeated // and somebody else has the block by now
		}
	}
	return lease.Grant{}, err
}

func granted(b driver.Block, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	return b.Grant(), nil
}

// order returns the numbers of the client's pages in an order that depends on
// the nonce alone, so that clients spread over the pages.
func (sh shape) order(nonce string) []int {
	half := func(text string) uint64 {
		n, _ := strconv.ParseUint(text, 16, 64) // CheckRequest saw to it
		return n
	}
	first, n := sh.pages()
	order := rand.New(rand.NewPCG(half(nonce[:16]), half(nonce[16:]))).Perm(n)
	for i := range order {
		order[i] += first
	}
	return order
}

// offer returns the block of the page that has the request's nonce, or
// otherwise the one that has been free longest.
func (p *page) offer(sh shape, r lease.Request) (best driver.Block, ok bool) {
	for i := range p.nodes.Blocks() {
		b := p.get(p.nodes.Block(i).Node)
		if _, err := sh.nodes.Index(b.Node); err != nil {
			continue
		}
		if b.Nonce == r.Nonce {
			return b, true
		}
		if b.Free(r.Now) && (!ok || b.GrantedUntil.Before(best.GrantedUntil)) {
			best, ok = b, true
		}
	}
	return best, ok
}

// search returns the first page in the order that offers a block. It writes
// nothing.
//
// If it finds none, there was a moment at which no block was free: the one
// after the last page was read and before objects are listed. A page that still
// has the version that was read was full in between. So was one that has another
// version, is full, and had no release since it was read.
func (s *Store) search(ctx context.Context, sh shape, r lease.Request, order []int) (*page, error) {
	seen := make(map[int]*page, len(order))
	for left, size := order, 1; len(left) > 0; size = min(2*size, atOnce) {
		size = min(size, len(left))
		found, err := s.readAll(ctx, sh, left[:size], nil)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			if _, ok := p.offer(sh, r); ok {
				return p, nil
			}
			seen[p.Number] = p
		}
		left = left[size:]
	}
	for {
		listed, err := s.server.List(ctx)
		if err != nil {
			return nil, err
		}
		changed := slices.DeleteFunc(slices.Clone(order), func(number int) bool {
			return listed[pageName(number)].Version == seen[number].version
		})
		found, err := s.readAll(ctx, sh, changed, listed)
		if err != nil {
			return nil, err
		}
		released := false
		for _, p := range found {
			if _, ok := p.offer(sh, r); ok {
				return p, nil
			}
			released = released || seen[p.Number].Releases != p.Releases
			seen[p.Number] = p
		}
		if !released {
			return nil, full(sh, seen)
		}
	}
}

// full is the error if all pages are full.
func full(sh shape, pages map[int]*page) error {
	var next time.Time
	for _, p := range pages {
		for _, b := range p.Blocks {
			if _, err := sh.nodes.Index(b.Node); err == nil && (next.IsZero() || b.Until.Before(next)) {
				next = b.Until
			}
		}
	}
	return fmt.Errorf("%w: all %d are granted, the next one is free at %s",
		lease.ErrNoFreeNode, sh.nodes.Blocks(), next.Format(time.RFC3339))
}

// readAll returns pages, in the same order. It does not read those whose data
// was listed.
func (s *Store) readAll(ctx context.Context, sh shape, numbers []int, listed map[string]Object) ([]*page, error) {
	all := make([]*page, len(numbers))
	err := eachAtOnce(ctx, len(numbers), func(ctx context.Context, i int) (err error) {
		if o := listed[pageName(numbers[i])]; o.Data != nil {
			all[i], err = parse(sh, numbers[i], o)
		} else {
			all[i], err = s.read(ctx, sh, numbers[i])
		}
		return err
	})
	return all, err
}
