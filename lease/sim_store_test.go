package lease_test

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// server is a store that simulated processes share.
type server struct {
	w     *world
	nodes driver.NodeRange
	store interface {
		lease.Store
		lease.Admin
	}
	down time.Duration // down until this time

	retired bool // another store replaced it
}

func (w *world) newServer() *server {
	s := &server{w: w, nodes: w.nodes}
	s.restore(nil)
	return s
}

// restore replaces the store's blocks, as an operator does with a backup.
func (s *server) restore(blocks []lease.Grant) {
	s.store = driver.NewMemory(driver.WithNodeRange(s.nodes), driver.WithClock(trueTime{s.w}), driver.WithBlocks(blocks))
	if wrong := s.w.variant.store; wrong != nil {
		s.store = wrong(s, blocks)
	}
}

func (s *server) list() []lease.Grant {
	blocks, err := s.store.List(context.Background())
	if err != nil {
		panic(err)
	}
	return blocks
}

// backup returns a function that restores the present state of the store and the ledger.
func (s *server) backup() (restore func()) {
	blocks, current := s.list(), map[uint32]granted{}
	ledger := s.w.ledger
	for node, g := range ledger.current {
		if s.has(node) {
			current[node] = *g
		}
	}
	return func() {
		s.restore(blocks)
		maps.DeleteFunc(ledger.current, func(node uint32, _ *granted) bool { return s.has(node) })
		for node, g := range current {
			ledger.current[node] = &g
		}
	}
}

func (s *server) has(node uint32) bool { return node-s.nodes.First < s.nodes.Nodes }

// move replaces the store by another one, which knows none of its grants: nothing is granted by
// the old one any more, and nothing by the new one until all grants are over.
func (s *server) move() {
	var closed []lease.Grant
	for i := range s.nodes.Blocks() {
		closed = append(closed, lease.Grant(s.nodes.Block(i).Raise(time.Unix(randflake.EndOfLife, 0))))
	}
	s.store = driver.NewMemory(driver.WithNodeRange(s.nodes), driver.WithBlocks(closed))
	next := &server{w: s.w, nodes: s.nodes}
	next.restore(nil)
	if !s.w.variant.moves {
		next.raise()
	}
	for i := range s.w.servers {
		if s.w.servers[i] == s {
			s.w.servers[i] = next
		}
	}
	for _, h := range s.w.hosts {
		if h.server == s {
			h.server = next
		}
	}
	maps.DeleteFunc(s.w.ledger.current, func(node uint32, _ *granted) bool { return s.has(node) })
	s.retired = true
	s.w.logf("a store is moved")
	for _, p := range s.w.processes {
		if p.server == s && !p.dead && !p.closing {
			s.w.after(s.w.between(0, 3*s.w.ttl), func() { // its settings are changed
				if !p.dead && !p.closing {
					p.close()
					s.w.start(p.host, nil)
				}
			})
		}
	}
}

// raise follows the recipe of a restored backup, by the store's clock.
func (s *server) raise() {
	now := s.w.time()
	if s.w.variant.behind {
		now = now.Add(-2 * lease.MaxClockAhead)
	}
	if _, err := s.store.Raise(context.Background(), now.Add(s.w.ttl+lease.MaxClockAhead)); err != nil {
		panic(err)
	}
	s.w.logf("a store is raised")
}

// trueTime is the store's clock.
type trueTime struct{ w *world }

func (c trueTime) Now() time.Time { return c.w.time() }

// client connects a process to its server. Requests and answers are delayed, lost, delivered after
// the client gave up, or delivered twice.
type client struct {
	w *world
	p *process
}

var errNoAnswer = errors.New("no answer")

const simTimeout = 2 * time.Second

// reply is the result of a request for its client.
type reply struct {
	grant lease.Grant
	of    *granted // the grant whose state this is
	wrote bool
	freed bool // a copy of the client returned it: then, not when the answer arrives
	err   error

	sent time.Duration // when it was sent
	wait time.Duration // until it arrives
}

// call sends a request; apply runs on the server.
func (c client) call(ctx context.Context, apply func(*server) reply) reply {
	w, p := c.w, c.p
	p.sleep(ask(p, func() time.Duration {
		if p.armed {
			p.armed = false
			w.after(w.between(0, 20*time.Millisecond), func() { w.copySome(p) })
		}
		return w.between(0, 10*time.Millisecond)
	}))
	r := ask(p, func() reply {
		s := p.server
		lost := reply{err: errNoAnswer, sent: w.now, wait: w.between(10*time.Millisecond, simTimeout)}
		again := func() { _ = apply(s) }
		if p.host.cut > w.now || s.down > w.now || w.chance(0.08) {
			if w.rng.IntN(2) == 0 { // not lost: it arrives after the client has given up
				w.after(simTimeout+w.late(), again)
			}
			return lost
		}
		if w.chance(0.05) { // arrives twice
			w.after(w.late(), again)
		}
		r := apply(s)
		if p.host.cut > w.now || w.chance(0.06) { // the answer is lost
			return lost
		}
		r.sent, r.wait = w.now, w.between(0, 10*time.Millisecond)
		if w.chance(0.05) {
			r.wait = w.between(0, simTimeout)
		}
		return r
	})
	p.sleep(r.wait)
	if errors.Is(ctx.Err(), context.Canceled) {
		return reply{err: ctx.Err()}
	}
	// The connection of a copy may or may not be broken.
	if ask(p, func() bool { return p.parted > r.sent && w.rng.IntN(2) == 0 }) {
		return reply{err: errNoAnswer}
	}
	return r
}

// late returns how late a message is: sometimes more than two leases.
func (w *world) late() time.Duration {
	return pick(w, w.between(0, w.ttl), w.between(0, 2*w.ttl), w.between(0, 5*w.ttl))
}

// tell runs f unless the process is just being copied.
func (p *process) tell(f func()) {
	if !p.copying {
		f()
	}
}

func (c client) Describe(context.Context) (lease.Description, error) {
	return ask(c.p, func() lease.Description {
		d, err := c.p.server.store.Describe(context.Background())
		if err != nil {
			panic(err)
		}
		return d
	}), nil
}

func (c client) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w, p := c.w, c.p
	if w.variant.resumes {
		r.Nonce = p.resume(r.Nonce)
	}
	p.asked = append(p.asked, r.Nonce)
	acquire := func(s *server, r lease.Request) reply {
		g, err := s.store.Acquire(context.Background(), r)
		if err != nil {
			return reply{err: err}
		}
		w.logf("process %d: granted node %d %s to %s, version %d", p.id, g.Node, text(g.Start), text(g.End), g.Version)
		return reply{grant: g, of: w.ledger.wrote(g, true)}
	}
	if p.ahead > 0 {
		// The clock is set right before the next Acquire.
		early := r
		early.Now = r.Now.Add(p.ahead)
		p.tell(func() {
			w.after(w.between(0, w.ttl), func() { _ = acquire(p.server, early) })
		})
		p.ahead = 0
		return lease.Grant{}, errNoAnswer
	}
	got := c.call(ctx, func(s *server) reply { return acquire(s, r) })
	if got.err == nil {
		p.tell(func() {
			p.grants = append(p.grants, got.of)
			w.ledger.acknowledged(p, got.of, r.Nonce)
		})
	} else if w.variant.trusts {
		p.again = r.Nonce
		p.src.(*lease.Keeper).ForgetTries()
	}
	if w.variant.inclusive {
		got.grant.End = got.grant.End.Add(time.Second)
	}
	return got.grant, got.err
}

func (c client) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w, p := c.w, c.p
	p.about, p.proposed = g, append(p.proposed, r.Nonce)
	got := c.call(ctx, func(s *server) reply {
		before, _ := s.store.Get(context.Background(), g.Node)
		renewed, err := s.store.Renew(context.Background(), g, r)
		if w.readers && errors.Is(err, lease.ErrLost) && before.Nonce == r.Nonce {
			err = errNoAnswer // its write was refused, and may have been made
		}
		if err != nil {
			return reply{err: err}
		}
		w.logf("process %d: renewed node %d to %s, version %d", p.id, renewed.Node, text(renewed.End), renewed.Version)
		return reply{grant: renewed, of: w.ledger.wrote(renewed, false), wrote: renewed.Version > before.Version}
	})
	switch {
	case got.err == nil:
		p.tell(func() {
			if !got.wrote {
				w.ledger.hears(p, got.of)
			}
			w.ledger.acknowledged(p, got.of, r.Nonce)
		})
	case w.variant.reads != nil && errors.Is(got.err, lease.ErrLost):
		got.err = errNoAnswer // a refusal tells nothing about this renewal
	case w.variant.assumes && errors.Is(got.err, errNoAnswer):
		got.err, got.grant = nil, g
		got.grant.End, got.grant.Version, got.grant.Nonce = r.Now.Add(r.TTL).Truncate(time.Second), g.Version+1, r.Nonce
	}
	return got.grant, got.err
}

func (c client) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	w, p := c.w, c.p
	p.about = g
	if w.variant.givesBack {
		unused = unused.Add(-time.Second)
	}
	got := c.call(ctx, func(s *server) reply {
		err := s.store.Release(context.Background(), g, next, unused)
		if err == nil {
			w.ledger.released(g, p, unused)
			w.logf("process %d: released node %d from %s", p.id, g.Node, text(unused))
		}
		return reply{err: err}
	})
	return got.err
}

func (c client) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	w, p := c.w, c.p
	got := c.call(ctx, func(s *server) reply {
		stored, err := s.store.Get(context.Background(), node)
		of := w.ledger.current[node]
		return reply{grant: stored, of: of, freed: of != nil && of.returned(p), err: err}
	})
	if got.err != nil {
		return got.grant, got.err
	}
	p.tell(func() {
		mine := w.ledger.byNonce[p.about.Nonce]
		if w.ledger.foreign(p, got.grant.Nonce) || got.freed && got.of == mine {
			w.ledger.hears(p, mine)
		}
	})
	if lie := w.variant.reads; lie != nil && len(p.proposed) > 0 {
		return lie(p, p.about, got.grant), nil
	}
	return got.grant, nil
}

func text(t time.Time) string { return t.UTC().Format("15:04:05") }

var _ randflake.Clock = trueTime{}
