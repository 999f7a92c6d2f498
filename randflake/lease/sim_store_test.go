package lease

import (
	"context"
	"errors"
	"slices"
	"time"
)

// server is a store that simulated processes share.
type server struct {
	w     *world
	store simStore
	down  time.Duration // until
}

// simStore is a store whose state can be copied and put back, as a backup is.
type simStore interface {
	Store
	Admin
	backup() simStoreState
	restore(simStoreState)
}

type simStoreState []Block

func (m *Memory) backup() simStoreState       { return slices.Clone(m.blocks) }
func (m *Memory) restore(state simStoreState) { m.blocks = slices.Clone(state) }

func newServer(w *world) *server {
	s := &server{w: w}
	if w.variant.store != nil {
		s.store = w.variant.store(w)
	} else {
		s.store = NewMemory(WithNodeRange(w.nodes), WithStoreClock(w.time))
	}
	return s
}

// client is a process's way to its server. Requests and answers are delayed,
// lost, delivered after the client gave up, or delivered twice.
type client struct {
	w *world
	p *process
}

var errNoAnswer = errors.New("no answer")

const simTimeout = 2 * time.Second

// call sends a request; apply runs on the server.
func (c client) call(ctx context.Context, apply func() (Grant, error)) (Grant, error) {
	w, s := c.w, c.p.host.server
	w.sleep(w.between(0, 10*time.Millisecond))
	if c.p.host.cut > w.now || s.down > w.now || w.chance(0.06) {
		if w.rng.IntN(2) == 0 { // not lost: it arrives when the client has given up
			w.after(simTimeout+w.between(0, 2*w.ttl), func() { _, _ = apply() })
		}
		return c.giveUp(ctx)
	}
	if w.chance(0.02) { // arrives twice
		w.after(w.between(0, 2*w.ttl), func() { _, _ = apply() })
	}
	g, err := apply()
	if c.p.host.cut > w.now || w.chance(0.05) { // the answer is lost
		return c.giveUp(ctx)
	}
	late := w.between(0, 10*time.Millisecond)
	if w.chance(0.05) {
		late = w.between(0, simTimeout)
	}
	w.sleep(late)
	if errors.Is(ctx.Err(), context.Canceled) {
		return Grant{}, ctx.Err()
	}
	return g, err
}

func (c client) giveUp(ctx context.Context) (Grant, error) {
	c.w.sleep(c.w.between(10*time.Millisecond, simTimeout))
	if errors.Is(ctx.Err(), context.Canceled) {
		return Grant{}, ctx.Err()
	}
	return Grant{}, errNoAnswer
}

func (c client) Acquire(ctx context.Context, r Request) (Grant, error) {
	if c.w.variant.resumes {
		r.Holder = c.p.resume(r.Holder)
	}
	c.p.granted = append(c.p.granted, r.Holder)
	g, err := c.call(ctx, func() (Grant, error) {
		g, err := c.p.host.server.store.Acquire(context.Background(), r)
		if err == nil {
			c.w.ledger.granted(g)
			c.w.logf("process %d: granted nodes %d+%d %s to %s", c.p.id, g.Node, g.Nodes, text(g.Start), text(g.End))
		}
		return g, err
	})
	if c.w.variant.inclusive {
		g.End = g.End.Add(time.Second)
	}
	return g, err
}

func (c client) Renew(ctx context.Context, g Grant, end time.Time) (Grant, error) {
	store := c.p.host.server.store
	apply := func() (Grant, error) {
		r, err := store.Renew(context.Background(), g, end)
		if err == nil {
			c.w.ledger.granted(r)
			c.w.logf("process %d: renewed node %d to %s", c.p.id, r.Node, text(r.End))
		}
		return r, err
	}
	r, err := c.call(ctx, apply)
	if c.w.variant.assumes && errors.Is(err, errNoAnswer) {
		r, err = g, nil
		r.End, r.Version = capEnd(end), g.Version+1
	}
	return r, err
}

func (c client) Release(ctx context.Context, g Grant, unused time.Time) error {
	_, err := c.call(ctx, func() (Grant, error) {
		err := c.p.host.server.store.Release(context.Background(), g, unused)
		if err == nil {
			c.w.ledger.released(g, unused)
			c.w.logf("process %d: released node %d from %s", c.p.id, g.Node, text(unused))
		}
		return Grant{}, err
	})
	return err
}

func (c client) Get(ctx context.Context, g Grant) (Grant, error) {
	return c.call(ctx, func() (Grant, error) { return c.p.host.server.store.Get(context.Background(), g) })
}
