package pages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Layout is how a package keeps its pages.
type Layout struct {
	// Name is the package's, for errors.
	Name string
	// BlocksPerPage is how many blocks a page of a new store has. It is fixed at
	// the first use of a store, as the block size is.
	BlocksPerPage uint32
}

// Store keeps leases on the pages of a [Server]. It is safe for concurrent use.
//
// Every change is one conditional write of one page, which was read before: if
// the page has changed meanwhile, it is read again. A write whose outcome is
// unknown is never repeated: its error is returned, and the caller has the
// nonce by which to find out.
//
// Acquire finds the block of a holder that acquired it, not that of a holder
// which a Renew made, unless it is on the page that it reads: a Keeper draws a
// nonce of its own for each Acquire.
type Store struct {
	server Server
	layout Layout
	asked  driver.NodeRange      // zero fields are taken from the configuration
	known  atomic.Pointer[shape] // nil until the configuration has been read
}

var _ interface {
	lease.Store
	lease.Admin
} = (*Store)(nil)

// New returns a store on the pages of a server. It makes no request. Zero fields
// of nodes are taken from the store. If the range is invalid, every call returns
// the error of [driver.NodeRange.Check].
func New(server Server, layout Layout, nodes driver.NodeRange) *Store {
	return &Store{server: server, layout: layout, asked: nodes}
}

// Renew implements [lease.Store]. It is two requests, or more if others write
// the page at this moment.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("%s: renew node %d: %w", s.layout.Name, g.Node, err)
	}
	b, err := s.change(ctx, g, r.Nonce, func(p *page, b driver.Block) (driver.Block, error) {
		if err := driver.CheckRequest(r, p.latest()); err != nil {
			return b, err
		}
		return b.Renew(g, r)
	})
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("renew node %d", g.Node), err)
	}
	return b.Grant(), nil
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	_, err := s.change(ctx, g, next, func(p *page, b driver.Block) (driver.Block, error) {
		p.Releases++
		return b.Release(g, next, unused)
	})
	if err != nil {
		return s.failed(ctx, fmt.Sprintf("release node %d", g.Node), err)
	}
	return nil
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	p, err := s.pageOf(ctx, node)
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("get node %d", node), err)
	}
	return p.get(node).Grant(), nil
}

// rule returns the next state of a block on a page.
type rule func(*page, driver.Block) (driver.Block, error)

// change applies a rule to the block of g.
//
// If a write was refused, and then the page has its nonce, something between
// here and the server repeated the write: the first one was made. Or a copy of
// this process made it, with the same nonce. Of two copies at most one may be
// told yes, and this one cannot know which it is. So the error is not definite.
func (s *Store) change(ctx context.Context, g lease.Grant, next string, rule rule) (driver.Block, error) {
	var since uint64 // how many writes the page had
	for try := 0; ; try++ {
		p, err := s.pageOf(ctx, g.Node)
		if err != nil {
			return driver.Block{}, err
		}
		before := p.get(g.Node)
		if try > 0 && (before.Nonce == next || slices.Contains(p.since(since), next)) {
			return driver.Block{}, errRepeated
		}
		since = p.Writes
		after, err := rule(p, before)
		if err != nil {
			return driver.Block{}, err
		}
		p.put(after)
		if err := s.write(ctx, p, next); !errors.Is(err, ErrChanged) {
			return after, err
		}
		if err := pause(ctx, try); err != nil {
			return driver.Block{}, err
		}
	}
}

var errRepeated = errors.New("a write was refused, and may have been made: " +
	"the network repeated it, or a copy of this process has the same nonce")

// pageOf reads the page of a node.
func (s *Store) pageOf(ctx context.Context, node uint32) (*page, error) {
	sh, err := s.setup(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := sh.nodes.Index(node); err != nil {
		return nil, err
	}
	return s.read(ctx, sh, sh.page(node))
}

func (s *Store) read(ctx context.Context, sh shape, number int) (*page, error) {
	o, err := s.server.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return parse(sh, number, o)
}

// write writes a page unless it was written since it was read.
func (s *Store) write(ctx context.Context, p *page, nonce string) error {
	data, err := p.bytes(nonce)
	if err != nil {
		return err
	}
	_, err = s.server.Write(ctx, pageName(p.Number), data, p.version)
	return err
}

// latest is the latest time that the server's clock had when it sent the page:
// it sends whole seconds. It is zero if it has no clock.
func (p *page) latest() time.Time {
	if p.now.IsZero() {
		return p.now
	}
	return p.now.Add(time.Second)
}

// pause waits before a page is read again, so that its writers come apart. The
// first time it does not wait.
func pause(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	const most = 500 * time.Millisecond
	wait := time.NewTimer(rand.N(min(5*time.Millisecond<<min(try, 10), most)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return nil
	}
}

// failed adds to err what was being done.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s: %s: %w", s.layout.Name, what, err)
}
