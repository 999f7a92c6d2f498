package lease_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// link connects the engine of a process to the server that its host reaches. Requests and responses
// are delayed, lost, delivered after the client gave up, or delivered twice.
type link struct {
	driver.Objects // no process lists objects
	p              *process
}

var errNoAnswer = errors.New("no answer")

const simTimeout = 2 * time.Second

func (l link) Read(ctx context.Context, name string) (driver.Object, error) {
	return l.send(func(s *server) (driver.Object, error) { return s.Read(ctx, name) })
}

func (l link) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	return l.send(func(s *server) (driver.Object, error) {
		o, err := s.Write(ctx, name, data, version, place)
		if err == nil {
			l.p.w.logf("process %d wrote %s at server %d", l.p.id, name, s.id)
		}
		return o, err
	})
}

// reply is the response to a request.
type reply struct {
	object driver.Object
	err    error
	sent   time.Duration // when it was sent
	wait   time.Duration // until it arrives
}

// send sends a request; serve runs on the server.
func (l link) send(serve func(*server) (driver.Object, error)) (driver.Object, error) {
	p, w := l.p, l.p.w
	p.sleep(ask(p, func() time.Duration {
		if p.armed {
			p.armed = false
			w.after(w.between(0, 20*time.Millisecond), func() { w.copySome(p) })
		}
		return w.between(0, 10*time.Millisecond)
	}))
	r := ask(p, func() reply {
		lost := reply{err: errNoAnswer, sent: w.now,
			wait: w.between(10*time.Millisecond, simTimeout)}
		s := cmp.Or(w.last, p.host.server)
		again := func() { _, _ = serve(s) }
		if p.host.cut > w.now || w.chance(0.06) {
			if w.rng.IntN(3) > 0 { // not lost: it arrives after the client has given up
				w.after(lost.wait+w.late(), again)
			}
			return lost
		}
		if w.chance(0.03) { // arrives twice
			w.after(w.late(), again)
		}
		o, err := serve(s)
		if p.host.cut > w.now || w.chance(0.04) { // the response is lost
			return lost
		}
		r := reply{o, err, w.now, w.between(0, 10*time.Millisecond)}
		if w.chance(0.03) {
			r.wait = w.between(0, simTimeout)
		}
		return r
	})
	p.sleep(r.wait)
	if p.ctx.Err() != nil {
		return driver.Object{}, p.ctx.Err()
	}
	// The connection of a copy may or may not be broken.
	if ask(p, func() bool { return p.parted > r.sent && w.rng.IntN(2) == 0 }) {
		return driver.Object{}, errNoAnswer
	}
	return r.object, r.err
}

// late returns how late a message is: sometimes more than two leases.
func (w *world) late() time.Duration {
	return pick(w, w.between(0, 200*time.Millisecond), w.between(0, w.ttl), w.between(0, 5*w.ttl))
}

// client is the engine of a process. It tells the ledger what the process knows. It ignores
// deadlines, which are in real time.
type client struct {
	lease.Store
	p *process
}

func (c client) Describe(context.Context) (lease.Description, error) {
	return c.Store.Describe(context.Background())
}

func (c client) Begin(_ context.Context, r lease.BeginRequest) (lease.Description, error) {
	if c.p.w.wrong("a history that forgot goes on") && r.Reason == lease.Contradicted {
		d, err := c.Describe(context.Background())
		return d, cmp.Or(err, lease.ErrHistory)
	}
	c.p.w.logf("process %d begins a history: %s", c.p.id, r.Reason)
	d, err := c.Store.Begin(context.Background(), r)
	c.p.w.logf("process %d has history %s: %v", c.p.id, d.ID, err)
	return d, err
}

func (c client) Acquire(_ context.Context, r lease.Request) (lease.Grant, error) {
	p, w := c.p, c.p.w
	repeatedBy := p.life
	if !slices.Contains(p.asked, r.Nonce) {
		p.asked, repeatedBy = append(p.asked, r.Nonce), nil
	}
	g, err := c.Store.Acquire(context.Background(), r)
	if err == nil {
		p.learn(g)
		w.ledger.acknowledged(p, g, repeatedBy)
		w.logf("process %d is granted node %d in history %s: %s to %s", p.id, g.Node, g.Store,
			text(g.Start), text(g.End))
	} else if w.wrong("a repeated Acquire is used at once") {
		p.again = r.Nonce
		p.keeper.ForgetTries()
	}
	if w.wrong("inclusive end") {
		g.End = g.End.Add(time.Second)
	}
	return g, err
}

func (c client) Renew(_ context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w := c.p.w
	renewed, err := c.Store.Renew(context.Background(), g, r)
	switch {
	case err == nil:
		c.p.learn(renewed)
		w.ledger.acknowledged(c.p, renewed, nil)
	case w.wrong("assuming the requested end") && errors.Is(err, errNoAnswer):
		renewed, err = g, nil
		renewed.End, renewed.Version, renewed.Nonce = r.Now.Add(r.TTL).Truncate(time.Second),
			g.Version+1, r.Nonce
	case w.wrong("adopting anybody's renewal") && errors.Is(err, lease.ErrLost):
		stored, unread := c.Get(context.Background(), g)
		if unread == nil && stored.Acquired == g.Acquired && stored.Start.Equal(g.Start) {
			return stored, nil
		}
	}
	return renewed, err
}

func (c client) Get(_ context.Context, g lease.Grant) (lease.Grant, error) {
	stored, err := c.Store.Get(context.Background(), g)
	if err == nil {
		c.p.learn(stored)
		c.p.w.ledger.read(c.p, g, stored)
	}
	return stored, err
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339) }
