package pages

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
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Layout is how a package keeps its pages.
type Layout struct {
	// Name is the package's, for errors.
	Name string
	// BlocksPerPage is how many blocks a page of a new store has, from 1 to 131072.
	BlocksPerPage uint32
	// Probe is set if Create tries out the server's conditional writes: there are several
	// implementations of the server, or proxies in front of it.
	Probe bool
	// OneAtATime is set for a server that is not safe for concurrent use.
	OneAtATime bool
}

// Store keeps leases on the pages of a [Server]. It is a [driver.Store], and
// safe for concurrent use.
type Store struct {
	server waiter
	layout Layout
	shape  atomic.Pointer[shape] // of the store in use; nil until it has been described
}

var _ driver.Store = (*Store)(nil)

// New returns a store on the pages of a server. It makes no request. The error wraps
// [lease.ErrInvalidRequest]: BlocksPerPage is out of range.
func New(server Server, layout Layout) (*Store, error) {
	if layout.BlocksPerPage < 1 || layout.BlocksPerPage > randflake.MaxNode+1 {
		return nil, fmt.Errorf("%s: %w: %d blocks on a page, want 1 to %d",
			layout.Name, lease.ErrInvalidRequest, layout.BlocksPerPage, randflake.MaxNode+1)
	}
	return &Store{server: waiter{server}, layout: layout}, nil
}

// Close implements [driver.Store].
func (s *Store) Close(ctx context.Context) error {
	c, ok := s.server.Server.(io.Closer)
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
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("%s: renew node %d: %w", s.layout.Name, g.Node, err)
	}
	b, err := s.change(ctx, g.Node, r.Nonce, func(sh *shape, p *page, b driver.Block) (driver.Block, error) {
		if err := driver.CheckRequest(r, latest(p.now)); err != nil {
			return b, err
		}
		return b.Renew(g, driver.Shorten(r, sh.Description))
	})
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("renew node %d", g.Node), err)
	}
	return lease.Grant(b), nil
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.change(ctx, g.Node, nonce, func(_ *shape, p *page, b driver.Block) (driver.Block, error) {
		p.Releases++
		return b.Release(g, nonce, unused)
	})
	if err != nil {
		return s.failed(ctx, fmt.Sprintf("release node %d", g.Node), err)
	}
	return nil
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	sh, err := s.setupFor(ctx, node)
	var p *page
	if err == nil {
		p, err = s.read(ctx, sh, sh.page(node))
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("get node %d", node), err)
	}
	return lease.Grant(p.get(node)), nil
}

// change applies a rule to the block that starts at node.
func (s *Store) change(ctx context.Context, node uint32, nonce string, rule func(*shape, *page, driver.Block) (driver.Block, error)) (after driver.Block, err error) {
	sh, err := s.setupFor(ctx, node)
	if err != nil {
		return after, err
	}
	err = s.update(ctx, sh, sh.page(node), nonce, func(p *page, repeated bool) (bool, error) {
		if repeated {
			return false, errRepeated
		}
		if after, err = rule(sh, p, p.get(node)); err != nil {
			return false, err
		}
		p.put(after)
		return true, nil
	})
	return after, err
}

// setupFor returns the shape of the store, if a block of it starts at node.
func (s *Store) setupFor(ctx context.Context, node uint32) (*shape, error) {
	sh, err := s.setup(ctx)
	if err == nil {
		_, err = sh.nodes.Index(node)
	}
	return sh, err
}

// update is every write of a page: it reads the page, applies a rule and writes the result under a
// nonce, unless the rule finds nothing to write. If somebody else has written the page since it was
// read, it begins again.
//
// If a write was refused, and then the page has its nonce, repeated is true: something between
// here and the server repeated the write, and the first one was made. Or a copy of this process
// made it, with the same nonce. Of two copies at most one may be told yes, and this one cannot know
// which it is. So the rule returns errRepeated, which is not definite.
func (s *Store) update(ctx context.Context, sh *shape, number int, nonce string, rule func(p *page, repeated bool) (write bool, err error)) error {
	p, err := s.read(ctx, sh, number)
	var writes uint64 // of the page, when it was read before
	for try := 0; err == nil; try++ {
		repeated := try > 0 && nonce != "" && (p.has(nonce) || slices.Contains(p.since(writes), nonce))
		writes = p.Writes
		write, err := rule(p, repeated)
		if err != nil || !write {
			return err
		}
		if p, err = s.write(ctx, sh, p, nonce, try); p == nil {
			return err
		}
	}
	return err
}

var errRepeated = errors.New("a write was refused, and may have been made: " +
	"the network repeated it, or a copy of this process has the same nonce")

func (s *Store) read(ctx context.Context, sh *shape, number int) (*page, error) {
	o, err := s.server.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return parse(sh, number, o)
}

// write writes the next state of a page, under a nonce. If somebody else has
// written the page since it was read, it returns the page as it is now;
// otherwise it returns nil. It is the caller's try with this number.
func (s *Store) write(ctx context.Context, sh *shape, p *page, nonce string, try int) (now *page, err error) {
	data, err := p.bytes(nonce)
	if err != nil {
		return nil, err
	}
	o, err := s.server.Write(ctx, pageName(p.Number), data, p.version)
	if !errors.Is(err, ErrChanged) {
		return nil, err
	}
	if try == 0 && o.Version != "" {
		return parse(sh, p.Number, o)
	}
	if err := pause(ctx, try); err != nil {
		return nil, err
	}
	return s.read(ctx, sh, p.Number)
}

// latest is the latest time that a server's clock had when it sent a time, which is in whole
// seconds, or the zero Time if it has no clock.
func latest(sent time.Time) time.Time {
	if sent.IsZero() {
		return sent
	}
	return sent.Add(time.Second)
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
	if errors.Is(err, errNoConfig) {
		if page, _ := s.stray(ctx); page != "" {
			err = fmt.Errorf("%w; %s", err, gone(page))
		}
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("%s: %s: %w", s.layout.Name, what, err)
}
