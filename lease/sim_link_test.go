package lease_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// create creates the store.
func (w *world) create(nodes lease.Description) {
	nodes.ID, nodes.LongestTTL = few.ID, (w.ttl + time.Second - 1).Truncate(time.Second)
	nodes.Secrets = []string{nodes.Fingerprint(testCodec)}
	w.about, w.objects = nodes, &memstore.Objects{Clock: w.time}
	w.store = w.engine(w.objects)
	if err := w.store.Create(context.Background(), nodes); err != nil {
		panic(err)
	}
}

// engine returns a client of objects. Two pages have all blocks: an Acquire then reads one page at
// a time, in the process's coroutine.
func (w *world) engine(o driver.Objects) stores.Store {
	return must(stores.New(o, driver.Layout{Name: "simulated",
		BlocksPerPage: uint32(w.about.Blocks())}))
}

func (w *world) blocks() []lease.Grant { return must(w.store.List(context.Background())) }

// link connects the engine of a process to the server. Requests and responses are delayed, lost,
// delivered after the client gave up, or delivered twice.
type link struct {
	driver.Objects // no process lists objects
	p              *process
}

var errNoAnswer = errors.New("no answer")

const simTimeout = 2 * time.Second

func (l link) Read(_ context.Context, name string) (driver.Object, error) {
	return l.send(func() (driver.Object, error) {
		return l.p.w.objects.Read(context.Background(), name)
	})
}

func (l link) Write(_ context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	return l.send(func() (driver.Object, error) {
		w, ctx := l.p.w, context.Background()
		old := must(w.objects.Read(ctx, name))
		if w.wrong("writes without a condition") {
			version = old.Version
		}
		o, err := w.objects.Write(ctx, name, data, version)
		if err != nil {
			return o, err
		}
		w.record(l.p)
		if w.wrong("a store that forgets acknowledged writes") && w.chance(0.1) {
			must(w.objects.Write(ctx, name, old.Data, o.Version))
			for _, b := range w.blocks() {
				w.ledger.granted[b.Node].nonce = b.Nonce
			}
		}
		return o, nil
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
func (l link) send(serve func() (driver.Object, error)) (driver.Object, error) {
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
		again := func() { _, _ = serve() }
		if p.host.cut > w.now || w.chance(0.06) {
			if w.rng.IntN(3) > 0 { // not lost: it arrives after the client has given up
				w.after(lost.wait+w.late(), again)
			}
			return lost
		}
		if w.chance(0.03) { // arrives twice
			w.after(w.late(), again)
		}
		o, err := serve()
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
func (w *world) record(p *process) {
	for _, b := range w.blocks() {
		if g := w.ledger.granted[b.Node]; g == nil || g.nonce != b.Nonce {
			w.ledger.wrote(b, p)
			w.logf("process %d wrote node %d: %s to %s, version %d, owner %q", p.id, b.Node,
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
	return c.Store.Describe(context.Background())
}

func (c client) Acquire(_ context.Context, r lease.Request) (lease.Grant, error) {
	p, w := c.p, c.p.w
	repeatedBy := p.life
	if !slices.Contains(p.asked, r.Nonce) {
		p.asked, repeatedBy = append(p.asked, r.Nonce), nil
	}
	g, err := c.Store.Acquire(context.Background(), r)
	if err == nil {
		p.grants = append(p.grants, w.ledger.grant(g))
		w.ledger.acknowledged(p, g, repeatedBy)
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
		w.ledger.acknowledged(c.p, renewed, nil)
	case w.wrong("assuming the requested end") && errors.Is(err, errNoAnswer):
		renewed, err = g, nil
		renewed.End, renewed.Version, renewed.Nonce = r.Now.Add(r.TTL).Truncate(time.Second),
			g.Version+1, r.Nonce
	case w.wrong("adopting anybody's renewal") && errors.Is(err, lease.ErrLost):
		stored, unread := c.Get(context.Background(), g)
		if unread == nil && stored.Start.Equal(g.Start) {
			return stored, nil
		}
	}
	return renewed, err
}

func (c client) Release(_ context.Context, g lease.Grant, nonce string, unused time.Time) error {
	if c.p.w.wrong("used seconds are returned") {
		unused = unused.Add(-time.Second)
	}
	return c.Store.Release(context.Background(), g, nonce, unused)
}

func (c client) Get(_ context.Context, g lease.Grant) (lease.Grant, error) {
	l := c.p.w.ledger
	stored, err := c.Store.Get(context.Background(), g)
	if err == nil {
		l.read(c.p, l.grant(g), stored.Nonce)
	}
	return stored, err
}

func text(t time.Time) string { return t.UTC().Format("15:04:05") }
