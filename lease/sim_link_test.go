package lease_test

import (
	"context"
	"errors"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// link connects the engine of a process to its server. Requests and responses are delayed, lost,
// delivered after the client gave up, or delivered twice.
type link struct {
	driver.Objects // no process lists objects
	p              *process
}

var errNoAnswer = errors.New("no answer")

const simTimeout = 2 * time.Second

func (l link) Read(_ context.Context, name string) (driver.Object, error) {
	return l.send(func(s *server) (driver.Object, error) {
		return s.objects.Read(context.Background(), name)
	})
}

func (l link) Write(_ context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	return l.send(func(s *server) (driver.Object, error) {
		if s.w.wrong("writes without a condition") {
			o, _ := s.objects.Read(context.Background(), name)
			version = o.Version
		}
		o, err := s.objects.Write(context.Background(), name, data, version)
		if err == nil {
			s.record(l.p)
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
		arrive := func() (r reply) {
			if p.server.closed {
				return lost
			}
			r.object, r.err = serve(p.server)
			return r
		}
		again := func() { arrive() }
		if p.host.cut > w.now || w.chance(0.06) {
			if w.rng.IntN(3) > 0 { // not lost: it arrives after the client has given up
				w.after(lost.wait+w.late(), again)
			}
			return lost
		}
		if w.chance(0.03) { // arrives twice
			w.after(w.late(), again)
		}
		r := arrive()
		if p.host.cut > w.now || w.chance(0.04) { // the response is lost
			return lost
		}
		r.sent, r.wait = w.now, w.between(0, 10*time.Millisecond)
		if w.chance(0.03) {
			r.wait = w.between(0, simTimeout)
		}
		return r
	})
	p.sleep(r.wait)
	if p.ctx.Err() != nil && !p.returning {
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

// record tells the ledger which blocks a process has written just now.
func (s *server) record(p *process) {
	for _, b := range must(s.store.List(context.Background())) {
		if g := s.granted[b.Node]; g == nil || g.nonce != b.Nonce {
			s.w.ledger.wrote(s, b, p)
			s.w.logf("process %d wrote node %d: %s to %s, version %d, owner %q", p.id, b.Node,
				text(b.Start), text(b.End), b.Version, b.Owner)
		}
	}
}

// client is the engine of a process. It tells the ledger what the process knows. It ignores
// deadlines, which are in real time.
type client struct {
	lease.Store
	p *process
}

func (c client) Describe(context.Context) (lease.Description, error) {
	d, err := c.Store.Describe(context.Background())
	if c.p.w.wrong("secrets are not compared") {
		d.Secrets = nil
	}
	return d, err
}

func (c client) Acquire(_ context.Context, r lease.Request) (lease.Grant, error) {
	p, w := c.p, c.p.w
	p.asked = append(p.asked, r.Nonce)
	g, err := c.acquire(r)
	if err == nil {
		of := w.ledger.byNonce[g.Nonce]
		p.grants = append(p.grants, of)
		w.ledger.acknowledged(p, of, r.Nonce)
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
	p, w := c.p, c.p.w
	p.about, p.proposed = g, append(p.proposed, r.Nonce)
	renewed, err := c.renew(g, r)
	switch {
	case err == nil:
		w.ledger.acknowledged(p, w.ledger.byNonce[renewed.Nonce], r.Nonce)
	case w.misreads() && errors.Is(err, lease.ErrLost):
		err = errNoAnswer // a refusal tells nothing about this renewal
	case w.wrong("assuming the requested end") && errors.Is(err, errNoAnswer):
		err, renewed = nil, g
		renewed.End, renewed.Version, renewed.Nonce = r.Now.Add(r.TTL).Truncate(time.Second),
			g.Version+1, r.Nonce
	}
	return renewed, err
}

func (c client) Release(_ context.Context, g lease.Grant, nonce string, unused time.Time) error {
	c.p.about = g
	if c.p.w.wrong("used seconds are returned") {
		unused = unused.Add(-time.Second)
	}
	return c.Store.Release(context.Background(), g, nonce, unused)
}

func (c client) Get(_ context.Context, g lease.Grant) (lease.Grant, error) {
	p, l := c.p, c.p.w.ledger
	stored, err := c.Store.Get(context.Background(), g)
	if err != nil {
		return stored, err
	}
	if l.foreign(p, stored.Nonce) {
		l.hears(p, l.byNonce[p.about.Nonce])
	}
	return p.reads(stored), nil
}

func text(t time.Time) string { return t.UTC().Format("15:04:05") }
