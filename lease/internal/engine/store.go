// Package engine is the rule by which stores grant blocks of nodes, over the objects of a backend.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Store keeps leases on pages. Each page is an object.
type Store struct {
	objects *requests
	layout  driver.Layout
	secrets redact.Secrets // of the URL
	// known is the description as this client read it last.
	known    atomic.Pointer[config]
	closing  sync.Once
	closeErr error
}

var _ lease.Store = (*Store)(nil)

// New returns a store that keeps leases in objects. It sends no request. If BlocksPerPage is out of
// range, the error wraps [lease.ErrInvalidRequest].
func New(o driver.Objects, layout driver.Layout) (*Store, error) {
	if err := checkPages(layout.BlocksPerPage); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.Name, err)
	}
	life, end := context.WithCancel(context.Background())
	return &Store{objects: &requests{Objects: o, life: life, end: end}, layout: layout}, nil
}

// Redact removes secrets from errors. It is called before the store is used.
func (s *Store) Redact(secrets redact.Secrets) { s.secrets = secrets }

// Objects returns the objects in which the store keeps leases, for package leasetest.
func (s *Store) Objects() driver.Objects { return s.objects.Objects }

// closeTime is how long Close waits at most: some clients wait for a server that does not answer.
// With the Keeper's four seconds a process ends within five.
const closeTime = 500 * time.Millisecond

// Close implements [stores.Store].
func (s *Store) Close() error {
	s.closing.Do(func() {
		closed := make(chan error, 1)
		go func() { closed <- s.objects.close() }()
		select {
		case s.closeErr = <-closed:
		case <-time.After(closeTime):
			s.closeErr = fmt.Errorf("%s: close: the client has not ended within %s", s.layout.Name,
				closeTime)
		}
	})
	return s.closeErr
}

// Renew implements [lease.Store]. It sends two requests, or more if others write the page at this
// moment.
func (s *Store) Renew(ctx context.Context, g lease.Grant,
	r lease.Request) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "renew node %d", g.Node)
	rule := func(c *config, p *page, b lease.Grant) (lease.Grant, error) {
		behind, err := checkClock(r.Now, p.now)
		if err := cmp.Or(checkRequest(r), checkSecret(p.Removed, r), err); err != nil {
			return b, err
		}
		r.TTL = min(r.TTL, c.LongestTTL)
		b, err = renew(b, g, r)
		b.Behind = behind
		return b, err
	}
	return s.change(ctx, g, r.Nonce, rule)
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string,
	unused time.Time) (err error) {
	defer s.failed(ctx, &err, "release node %d", g.Node)
	rule := func(_ *config, _ *page, b lease.Grant) (lease.Grant, error) {
		return release(b, g, nonce, unused)
	}
	_, err = s.change(ctx, g, nonce, rule)
	return err
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, g lease.Grant) (_ lease.Grant, err error) {
	defer s.failed(ctx, &err, "get node %d", g.Node)
	c, err := s.aboutBlock(ctx, g)
	if err != nil {
		return lease.Grant{}, err
	}
	p, err := s.read(ctx, c, c.page(g.Node))
	if err != nil {
		return lease.Grant{}, err
	}
	return p.get(g.Node), nil
}

// change applies a rule to the block of g.
func (s *Store) change(ctx context.Context, g lease.Grant, nonce string,
	rule func(*config, *page, lease.Grant) (lease.Grant, error)) (b lease.Grant, err error) {
	c, err := s.aboutBlock(ctx, g)
	if err != nil {
		return b, err
	}
	apply := func(p *page) (_ bool, err error) {
		b, err = rule(c, p, p.get(g.Node))
		p.put(b)
		return true, err
	}
	err = s.changePage(ctx, c, c.page(g.Node), nonce, apply)
	return b, err
}

// aboutBlock returns the description of the store if g is one of its blocks, as it was read last:
// the nodes of an ID, and their pages, never change.
func (s *Store) aboutBlock(ctx context.Context, g lease.Grant) (c *config, err error) {
	if c = s.known.Load(); c == nil || c.ID != g.Store {
		c, err = s.current(ctx, g.Store)
	}
	return c, cmp.Or(err, checkBlock(c.Description, g.Node))
}

// updateTries is how often a change is tried while others write the same object: a context may have
// no deadline. All tries together take about 10 s.
const updateTries = 50

// update changes an object in two steps, a read and a conditional write, which are repeated while
// other clients write in between. change returns the new data, or nil if nothing is to be written;
// again is set if a write was refused.
func (s *Store) update(ctx context.Context, name string,
	change func(o driver.Object, again bool) ([]byte, error)) error {
	for tries := 1; ; tries++ {
		o, err := s.objects.Read(ctx, name)
		if err != nil {
			return err
		}
		data, err := change(o, tries > 1)
		if err != nil || data == nil {
			return err
		}
		_, err = s.objects.Write(ctx, name, data, o.Version)
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

// changePage changes a page, under a nonce. change changes what was read, and reports whether it is
// to be written. If a write was refused and the page then has the nonce, only a change that is not
// to be written succeeds: either something between here and the server repeated the write, and the
// first one was stored; or a copy of this process wrote with the same nonce. At most one of two
// copies may succeed, and this process cannot know which it is.
func (s *Store) changePage(ctx context.Context, c *config, number int, nonce string,
	change func(p *page) (write bool, err error)) error {
	return s.update(ctx, pageName(number), func(o driver.Object, again bool) ([]byte, error) {
		p, err := parse(c, number, o)
		if err != nil {
			return nil, err
		}
		repeated := again && (p.has(nonce) || slices.Contains(p.Recent, nonce))
		switch write, err := change(p); {
		case repeated && (write || err != nil):
			return nil, errRepeated
		case err != nil || !write:
			return nil, err
		}
		return p.bytes(nonce)
	})
}

var errRepeated = errors.New("a write was refused, and may have been stored: " +
	"the network repeated it, or a copy of this process has the same nonce")

func (s *Store) read(ctx context.Context, c *config, number int) (*page, error) {
	o, err := s.objects.Read(ctx, pageName(number))
	if err != nil {
		return nil, err
	}
	return parse(c, number, o)
}

// failed adds the operation to an error.
func (s *Store) failed(ctx context.Context, failure *error, what string, args ...any) {
	err := *failure
	if err == nil {
		return
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	*failure = s.secrets.Error(driver.Diagnose(
		fmt.Errorf("%s: %s: %w", s.layout.Name, fmt.Sprintf(what, args...), err)))
}

// KeepsSecret implements [stores.Store].
func (s *Store) KeepsSecret() bool { return false }

// Secrets implements [stores.Store].
func (s *Store) Secrets(context.Context) (*randflake.Keyring, error) {
	return nil, fmt.Errorf("%s: %w: the store does not keep a secret", s.layout.Name,
		lease.ErrInvalidRequest)
}

// OnRestore implements [stores.Store].
func (s *Store) OnRestore() {}
