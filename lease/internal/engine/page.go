package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// page is a stored page, a fixed number of blocks, and the time at which the server sent it.
type page struct {
	pageHeader
	Blocks []lease.Grant // all of them, in order

	now time.Time // the server's, or zero
}

// pageHeader is the first line of a page.
type pageHeader struct {
	Format int
	Store  string // the ID of the history to which the page belongs
	Number int
}

func pageName(number int) string { return fmt.Sprintf("page-%04d", number) }

// parse reads a page of the history c. The checksum vouches for what does not depend on the place
// of a block: it is as this package wrote it.
func parse(c *config, number int, o driver.Object) (*page, error) {
	name, nodes := pageName(number), c.blocks(number)
	if o.Version == "" {
		return nil, fmt.Errorf("%w: %s is gone", lease.ErrContradicted, name)
	}
	p := &page{now: o.Time, Blocks: make([]lease.Grant, nodes.Blocks())}
	lines, err := unseal(name, o.Data, &p.pageHeader)
	if err != nil {
		return nil, err
	}
	if p.Store != c.ID {
		return nil, fmt.Errorf("%w: %s has the history %s, not %s", lease.ErrContradicted, name,
			p.Store, c.ID)
	}
	if p.Number != number {
		return nil, edited("%s is a copy of %s", name, pageName(p.Number))
	}
	for i := range p.Blocks {
		p.Blocks[i] = lease.Grant{Store: c.ID, Lease: randflake.Lease{
			Node: nodes.First + uint32(i)*c.BlockSize, Nodes: c.BlockSize}}
	}
	for i, line := range lines {
		b := lease.Grant{Store: c.ID}
		err := json.Unmarshal(line, &b)
		if err != nil || checkBlock(nodes, b.Node) != nil || b.Nodes != c.BlockSize ||
			b.Version == 0 || p.get(b.Node).Version > 0 {
			return nil, edited("%s: line %d is not a block that was written: %+v", name, i+2, b)
		}
		*p.get(b.Node) = b
	}
	if o.Place != "" {
		err = c.here(o.Place)
	}
	return p, err
}

// get returns a block of the page.
func (p *page) get(node uint32) *lease.Grant {
	return &p.Blocks[(node-p.Blocks[0].Node)/p.Blocks[0].Nodes]
}

// granted returns the blocks that were granted.
func (p *page) granted() []lease.Grant {
	return slices.DeleteFunc(slices.Clone(p.Blocks),
		func(b lease.Grant) bool { return b.Version == 0 })
}

// offer returns the block of the page that has the nonce, or otherwise the one whose grant ends
// first.
func (p *page) offer(nonce string) lease.Grant {
	best := p.Blocks[0]
	for _, b := range p.Blocks {
		if b.Nonce == nonce {
			return b
		}
		if b.End.Before(best.End) {
			best = b
		}
	}
	return best
}

// writes returns how often the page was written in its history.
func (p *page) writes() (n uint64) {
	for _, b := range p.Blocks {
		n += b.Version
	}
	return n
}

// seen remembers, for each page of a history, the most writes that this client has seen: a page
// that has fewer was set back.
type seen struct {
	mu      sync.Mutex
	history string
	writes  map[int]uint64
}

// before returns what is known before a page is read.
func (s *seen) before(c *config, number int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history != c.ID {
		s.history, s.writes = c.ID, map[int]uint64{}
	}
	return s.writes[number]
}

// add remembers a page, and compares it with what was known before it was read.
func (s *seen) add(p *page, before uint64) error {
	n := p.writes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history == p.Store {
		s.writes[p.Number] = max(s.writes[p.Number], n)
	}
	if n < before {
		return fmt.Errorf("%w: %s has %d writes, and had %d", lease.ErrContradicted,
			pageName(p.Number), n, before)
	}
	return nil
}
