package engine

import (
	"cmp"
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
	Blocks []lease.Grant // those that were granted, in order

	now   time.Time         // the server's, or zero
	nodes lease.Description // only the blocks of the page
}

// pageHeader is the first line of a page.
type pageHeader struct {
	Format int
	Store  string // the ID of the history to which the page belongs
	Number int
	// Recent has the nonces of the last writes, as many as recentNonces.
	Recent []string `json:",omitempty"`
}

// recentNonces is more than how often others write a page between a refused write and the next
// read.
const recentNonces = 16

const pagePrefix = "page-"

func pageName(number int) string { return fmt.Sprintf("%s%04d", pagePrefix, number) }

// parse reads a page of the history c.
func parse(c *config, number int, o driver.Object) (*page, error) {
	p := &page{now: o.Time, nodes: c.blocks(number)}
	name := pageName(number)
	if o.Version == "" {
		return nil, fmt.Errorf("%w: %s is gone", lease.ErrContradicted, name)
	}
	lines, err := unseal(name, o.Data, &p.pageHeader)
	if err != nil {
		return nil, err
	}
	if p.Store != c.ID {
		return nil, fmt.Errorf("%w: %s has the history %s, not %s", lease.ErrContradicted, name,
			p.Store, c.ID)
	}
	p.Blocks = make([]lease.Grant, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &p.Blocks[i]); err != nil {
			return nil, edited("%s: %w", name, err)
		}
		p.Blocks[i].Store = p.Store
	}
	if o.Place != "" {
		err = c.here(o.Place)
	}
	return p, cmp.Or(p.check(number), err)
}

// check returns an error for a page that this package would not have written.
func (p *page) check(number int) error {
	if p.Number != number {
		return edited("%s is a copy of %s", pageName(number), pageName(p.Number))
	}
	for i, b := range p.Blocks {
		switch {
		case checkBlock(p.nodes, b.Node) != nil, b.Nodes != p.nodes.BlockSize, i > 0 &&
			p.Blocks[i-1].Node >= b.Node, b.Version == 0, b.Acquired == "", b.Nonce == "",
			b.End.IsZero(), b.End.Unix() > randflake.EndOfLife, b.Start.After(b.End),
			b.Start.Nanosecond() > 0, b.End.Nanosecond() > 0:
			return edited("%s: line %d is not a block that was written: %+v",
				pageName(number), i+2, b)
		}
	}
	return nil
}

// get returns a block of the page.
func (p *page) get(node uint32) lease.Grant {
	if i, found := p.find(node); found {
		return p.Blocks[i]
	}
	return lease.Grant{Store: p.Store,
		Lease: randflake.Lease{Node: node, Nodes: p.nodes.BlockSize}}
}

// has reports whether a block of the page has this nonce, or had it lately.
func (p *page) has(nonce string) bool {
	return slices.Contains(p.Recent, nonce) ||
		slices.ContainsFunc(p.Blocks, func(b lease.Grant) bool { return b.Nonce == nonce })
}

// put replaces a block of the page.
func (p *page) put(b lease.Grant) {
	i, found := p.find(b.Node)
	if !found {
		p.Blocks = slices.Insert(p.Blocks, i, b)
	}
	p.Blocks[i] = b
}

func (p *page) find(node uint32) (i int, found bool) {
	return slices.BinarySearchFunc(p.Blocks, node, func(b lease.Grant, node uint32) int {
		return cmp.Compare(b.Node, node)
	})
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

// bytes returns the stored form of the page's next state.
func (p *page) bytes(nonce string) ([]byte, error) {
	p.Recent = append(p.Recent, nonce)
	p.Recent = p.Recent[max(0, len(p.Recent)-recentNonces):]
	return seal(p.pageHeader, p.Blocks...)
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
