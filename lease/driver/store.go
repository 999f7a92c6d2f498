package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Layout is how a package keeps its pages.
type Layout struct {
	// Name is the package's, for errors.
	Name string
	// BlocksPerPage is how many blocks a page of a new store has, from 1 to 131072.
	BlocksPerPage uint32
	// Probe is set if Create tests the server's conditional writes: there are several
	// implementations of the server, or proxies in front of it.
	Probe bool
}

// store keeps leases on the pages of a [Objects].
type store struct {
	server waiter
	layout Layout
	used   atomic.Pointer[config] // of the store in use; nil until it has been described
}

var _ Store = (*store)(nil)

// New returns a store that keeps leases on the pages of a server. It makes no request. The error
// wraps [lease.ErrInvalidRequest]: BlocksPerPage is out of range.
func New(server Objects, layout Layout) (Store, error) {
	if layout.BlocksPerPage < 1 || layout.BlocksPerPage > randflake.MaxNode+1 {
		return nil, fmt.Errorf("%s: %w: %d blocks on a page, want 1 to %d",
			layout.Name, lease.ErrInvalidRequest, layout.BlocksPerPage, randflake.MaxNode+1)
	}
	return &store{server: waiter{server}, layout: layout}, nil
}

// Close implements [Store].
func (s *store) Close(ctx context.Context) error {
	c, ok := s.server.Objects.(io.Closer)
	if !ok {
		return nil
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: close: %w", s.layout.Name, ctx.Err())
	}
}

// Renew implements [lease.Store]. It is two requests, or more if others write
// the page at this moment.
func (s *store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "renew node %d", g.Node)
	return s.change(ctx, g.Node, r.Nonce, func(c *config, p *page, b Block) (Block, error) {
		if err := CheckRequest(r, latest(p.now)); err != nil {
			return b, err
		}
		return b.Renew(g, Shorten(r, c.Description))
	})
}

// Release implements [lease.Store].
func (s *store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) (err error) {
	defer s.failed(ctx, &err, "release node %d", g.Node)
	_, err = s.change(ctx, g.Node, nonce, func(_ *config, _ *page, b Block) (Block, error) {
		return b.Release(g, nonce, unused)
	})
	return err
}

// Get implements [lease.Store].
func (s *store) Get(ctx context.Context, node uint32) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "get node %d", node)
	c, err := s.setupFor(ctx, node)
	if err != nil {
		return lease.Grant{}, err
	}
	p, err := s.read(ctx, c, c.page(node))
	if err != nil {
		return lease.Grant{}, err
	}
	return lease.Grant(p.get(node)), nil
}

// change applies a rule to the block that starts at node.
func (s *store) change(ctx context.Context, node uint32, nonce string, rule func(*config, *page, Block) (Block, error)) (lease.Grant, error) {
	c, err := s.setupFor(ctx, node)
	if err != nil {
		return lease.Grant{}, err
	}
	var after Block
	err = s.updatePage(ctx, c, c.page(node), nonce, func(p *page, repeated bool) (bool, error) {
		if repeated {
			return false, errRepeated
		}
		if after, err = rule(c, p, p.get(node)); err != nil {
			return false, err
		}
		p.put(after)
		return true, nil
	})
	if err != nil {
		return lease.Grant{}, err
	}
	return lease.Grant(after), nil
}

// setupFor returns the shape of the store, if a block of it starts at node.
func (s *store) setupFor(ctx context.Context, node uint32) (*config, error) {
	c, err := s.setup(ctx)
	if err == nil {
		_, err = c.nodes().Index(node)
	}
	return c, err
}

// updateTries is how often a change is tried while others write the same object: a context may have
// no deadline. All tries together take about 10 s.
const updateTries = 50

// update is every change of an object: it reads the object and writes what next returns, if that is
// not nil, on condition that the object is still as it was read. Otherwise it begins again.
func (s *store) update(ctx context.Context, name string, next func(o Object, again bool) ([]byte, error)) error {
	for try := range updateTries {
		o, err := s.server.Read(ctx, name)
		if err != nil {
			return err
		}
		data, err := next(o, try > 0)
		if err != nil || data == nil {
			return err
		}
		if _, err = s.server.Write(ctx, name, data, o.Version); !errors.Is(err, ErrChanged) {
			return err
		}
		if err := sleep(ctx, rand.N(min(time.Millisecond<<min(try, 10), 500*time.Millisecond))); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: another client wrote it first in each of %d attempts", name, updateTries)
}

// updatePage changes a page by a rule, under a nonce, unless the rule finds nothing to write.
//
// If a write was refused, and then the page has its nonce, repeated is true: something between
// here and the server repeated the write, and the first one was made. Or a copy of this process
// made it, with the same nonce. Of two copies at most one may be told yes, and this one cannot know
// which it is. So the rule returns errRepeated, which is not definite.
func (s *store) updatePage(ctx context.Context, c *config, number int, nonce string, rule func(p *page, repeated bool) (write bool, err error)) error {
	return s.update(ctx, pageName(number), func(o Object, again bool) ([]byte, error) {
		p, err := parse(c, number, o)
		if err != nil {
			return nil, err
		}
		repeated := again && nonce != "" && (p.has(nonce) || slices.Contains(p.Recent, nonce))
		if write, err := rule(p, repeated); err != nil || !write {
			return nil, err
		}
		return p.bytes(nonce)
	})
}

var errRepeated = errors.New("a write was refused, and may have been made: " +
	"the network repeated it, or a copy of this process has the same nonce")

func (s *store) read(ctx context.Context, c *config, number int) (*page, error) {
	o, err := s.server.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return parse(c, number, o)
}

// latest is the latest time that a server's clock had when it sent a time, which is in whole
// seconds, or the zero Time if it has no clock.
func latest(sent time.Time) time.Time {
	if sent.IsZero() {
		return sent
	}
	return sent.Add(time.Second)
}

// failed adds to an error what was being done.
func (s *store) failed(ctx context.Context, failure *error, what string, args ...any) {
	err := *failure
	if err == nil {
		return
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	*failure = fmt.Errorf("%s: %s: %w", s.layout.Name, fmt.Sprintf(what, args...), err)
}
