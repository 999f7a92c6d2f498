package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
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
	// Probe is when the server's conditional writes are tried out.
	Probe Probe
}

// Store keeps leases on the pages of a [Server]. It is a [driver.Store], and
// safe for concurrent use.
type Store struct {
	server waiter
	layout Layout
	asked  driver.NodeRange      // zero fields are taken from the configuration
	known  atomic.Pointer[shape] // nil until the configuration has been read
	probed probed

	mu   sync.Mutex
	last map[int]*page // pages as this process wrote them, if the server has no clock
}

var _ driver.Store = (*Store)(nil)

// New returns a store on the pages of a server. It makes no request. Zero fields
// of nodes are taken from the store. Errors: those of [driver.NodeRange.Check], as
// far as they do not depend on the store.
func New(server Server, layout Layout, nodes driver.NodeRange) (*Store, error) {
	if _, err := nodes.Resolve(cmp.Or(nodes.BlockSize, 1)); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.Name, err)
	}
	return &Store{
		server: waiter{server}, layout: layout, asked: nodes,
		probed: probed{turn: make(chan struct{}, 1)}, last: map[int]*page{},
	}, nil
}

// Close implements [driver.Store].
func (s *Store) Close() error {
	if c, ok := s.server.Server.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Renew implements [lease.Store]. It is two requests, or more if others write
// the page at this moment. If the server has no clock and nobody else has written
// the page since this process did, it is one.
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
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.change(ctx, g, nonce, func(p *page, b driver.Block) (driver.Block, error) {
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
	return p.get(node).Grant(), nil
}

// change applies a rule to the block of g.
//
// If a write was refused, and then the page has its nonce, something between
// here and the server repeated the write: the first one was made. Or a copy of
// this process made it, with the same nonce. Of two copies at most one may be
// told yes, and this one cannot know which it is. So the error is not definite.
func (s *Store) change(ctx context.Context, g lease.Grant, nonce string, rule func(*page, driver.Block) (driver.Block, error)) (driver.Block, error) {
	sh, err := s.setupFor(ctx, g.Node)
	if err != nil {
		return driver.Block{}, err
	}
	p := s.recall(sh, g)
	if p == nil {
		p, err = s.read(ctx, sh, sh.page(g.Node))
	}
	var writes uint64 // of the page, when it was read before
	for try := 0; err == nil; try++ {
		before := p.get(g.Node)
		if try > 0 && (before.Nonce == nonce || slices.Contains(p.since(writes), nonce)) {
			return driver.Block{}, errRepeated
		}
		writes = p.Writes
		after, err := rule(p, before)
		if err != nil {
			return driver.Block{}, err
		}
		p.put(after)
		if p, err = s.write(ctx, sh, p, nonce, try); p == nil {
			return after, err
		}
	}
	return driver.Block{}, err
}

var errRepeated = errors.New("a write was refused, and may have been made: " +
	"the network repeated it, or a copy of this process has the same nonce")

// setupFor returns the shape of the store, if a block of it starts at node.
func (s *Store) setupFor(ctx context.Context, node uint32) (shape, error) {
	sh, err := s.setup(ctx)
	if err == nil {
		_, err = sh.nodes.Index(node)
	}
	return sh, err
}

func (s *Store) read(ctx context.Context, sh shape, number int) (*page, error) {
	o, err := s.server.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return parse(sh, number, o)
}

// write writes the next state of a page, under a nonce. If somebody else has
// written the page since it was read, it returns the page as it is now;
// otherwise it returns nil. It is the caller's try with this number.
func (s *Store) write(ctx context.Context, sh shape, p *page, nonce string, try int) (now *page, err error) {
	data, err := p.bytes(nonce)
	if err != nil {
		return nil, err
	}
	if err := s.trust(ctx); err != nil {
		return nil, err
	}
	o, err := s.server.Write(ctx, pageName(p.Number), data, p.version)
	if err == nil {
		p.version = o.Version
		s.remember(p)
		return nil, nil
	}
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

// maxRemembered is more pages than a Keeper has blocks on.
const maxRemembered = 64

// remember keeps a page as it was just written. On a server with a clock every
// change has to read the time anyway.
func (s *Store) remember(p *page) {
	if !p.now.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxRemembered {
		clear(s.last)
	}
	s.last[p.Number] = p
}

// recall returns the page of g as this process wrote it last, if g is its
// block's state there: if nobody has written the page since, the rule need not
// read it again, and otherwise the write is refused. Whoever gets the page owns
// it.
func (s *Store) recall(sh shape, g lease.Grant) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := sh.page(g.Node)
	p := s.last[number]
	delete(s.last, number)
	if p == nil {
		return nil
	}
	if b := p.get(g.Node); b.Nonce != g.Nonce || b.Version != g.Version {
		return nil
	}
	return p
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
