package lease_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

func (w *world) newSecret() *randflake.Codec {
	w.secrets++
	var key [16]byte
	binary.BigEndian.PutUint64(key[:], w.secrets)
	return must(randflake.NewCodec(key[:]))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// server is an address at which there is a store, most of the time.
type server struct {
	w       *world
	secret  *randflake.Codec  // that processes get with its address
	about   lease.Description // of the store; without an ID there is none
	objects *memstore.Objects
	store   stores.Store
	granted map[uint32]*granted // the last grant of each block, by its first node
	clock   time.Duration       // how far its clock is ahead
}

func (w *world) newServer(with *randflake.Codec, nodes lease.Description) *server {
	s := &server{w: w, secret: with}
	s.create(nodes, time.Time{})
	return s
}

// create creates a store with the server's secret, which grants nothing before raised.
func (s *server) create(nodes lease.Description, raised time.Time) {
	s.w.stores++
	s.granted = map[uint32]*granted{}
	s.about = nodes
	s.about.ID = fmt.Sprintf("%032x", s.w.stores)
	s.about.LongestTTL = (s.w.ttl + time.Second - 1).Truncate(time.Second)
	s.about.Secrets = []string{s.about.Fingerprint(s.secret)}
	s.restore(nil, raised)
}

// onePage is a layout whose first page has every block.
var onePage = driver.Layout{Name: "simulated", BlocksPerPage: 1 << 17}

// restore replaces the store's blocks, as an operator does with a backup.
func (s *server) restore(blocks []lease.Grant, raised time.Time) {
	ctx := context.Background()
	s.about.Raised = raised
	s.objects = &memstore.Objects{Clock: s.Now}
	s.store = must(stores.New(s.objects, onePage))
	if err := s.store.Create(ctx, s.about); err != nil {
		panic(err)
	}
	if len(blocks) > 0 {
		o := must(s.objects.Read(ctx, simPage))
		must(s.objects.Write(ctx, simPage, withBlocks(o.Data, blocks), o.Version))
	}
	s.grantsFrom(raised)
}

const simPage = "page-0000"

// withBlocks returns a page with other blocks.
func withBlocks(data []byte, blocks []lease.Grant) []byte {
	header, _, _ := bytes.Cut(data, []byte("\n"))
	lines := append(bytes.Clone(header), '\n')
	for _, b := range blocks {
		lines = append(append(lines, must(json.Marshal(b))...), '\n')
	}
	sum := crc32.Checksum(lines, crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(lines, "{\"CRC32C\":\"%08x\"}\n", sum)
}

// grantsFrom records that the store grants nothing before a time.
func (s *server) grantsFrom(t time.Time) {
	if t.After(s.w.raised) {
		s.w.raised = t
	}
}

// Now is the store's clock.
func (s *server) Now() time.Time { return s.w.time().Add(s.clock) }

func (s *server) list() []lease.Grant { return must(s.store.List(context.Background())) }

// backup returns a function that restores the present state of the store and of its grants.
func (s *server) backup() (restore func()) {
	blocks, live, saved := s.list(), maps.Clone(s.granted), map[uint32]granted{}
	for node, g := range live {
		saved[node] = *g
	}
	return func() {
		s.clock = -s.w.between(0, protocol.MaxClockAhead) // another machine
		s.restore(blocks, time.Time{})
		s.granted = live
		for node, was := range saved {
			if *live[node] != was { // its holder knows of later writes
				live[node] = &was
			}
		}
	}
}

// rollOut creates a store with a new secret at another address and rolls it out, process by
// process. The old one stays. Sometimes the rollout ends halfway, or is undone.
func (s *server) rollOut() {
	w := s.w
	with := w.newSecret()
	if w.wrong("a new store with the old secret at once") {
		with = s.secret
	}
	next := w.newServer(with, s.about)
	w.logf("a store with a new secret is rolled out")
	for i := range w.servers {
		if w.servers[i] == s && w.rng.IntN(4) > 0 {
			w.servers[i] = next
		}
	}
	for _, h := range w.hosts {
		if h.server == s && w.rng.IntN(4) > 0 {
			h.server = next
			w.restart(h, s)
		}
	}
}

// restart restarts most of a host's processes that use a server, each some time later.
func (w *world) restart(h *host, s *server) {
	for _, p := range w.processes {
		if p.host == h && p.server == s && p.runs() && w.rng.IntN(4) > 0 {
			w.after(w.between(0, 3*w.ttl), func() { // its settings are changed
				if p.runs() {
					p.close()
					w.start(h)
				}
			})
		}
	}
}

// lose loses the store, as when its table is dropped. Then an operator creates another store:
// either with a new secret, which processes get when they are restarted, or with the same secret,
// and then it grants nothing until every lease is over.
func (s *server) lose() {
	w, nodes := s.w, s.about
	w.logf("a store is lost")
	if w.wrong("a store that creates itself") {
		s.restore(nil, time.Time{})
		return
	}
	s.about = lease.Description{}
	w.after(pick(w, 0, w.between(0, w.ttl)), func() {
		raised := s.afterLeases()
		switch {
		case w.wrong("an existing secret without the wait"):
			raised = time.Time{}
		case w.rng.IntN(2) == 0:
			s.secret, raised = w.newSecret(), time.Time{}
			w.logf("a store is created with a new secret")
		}
		s.create(nodes, raised)
		for _, h := range w.hosts {
			w.restart(h, s)
		}
	})
}

// afterLeases returns when every lease is over, as the command line computes it.
func (s *server) afterLeases() time.Time {
	now := s.Now()
	if s.w.wrong("a raise by a clock that is behind") {
		now = now.Add(-2*protocol.MaxClockAhead - 2*time.Minute)
	}
	return protocol.AfterLeases(now, s.w.ttl)
}

// raise follows the recipe of a restored backup. Sometimes the command is interrupted, and another
// operator, or the same, repeats it later. Until then the store grants nothing.
func (s *server) raise() {
	w := s.w
	until := s.afterLeases()
	w.logf("a store is raised to %s", text(until))
	const half = "an interrupted raise that is not repeated"
	if w.rng.IntN(2) == 0 && !w.wrong(half) {
		s.raiseTo(until)
		if w.rng.IntN(2) == 0 {
			w.after(w.between(0, w.ttl), func() { s.again(until) }) // it was finished already
		}
		return
	}
	if w.wrong(half) {
		var blocks []lease.Grant
		for i := range s.about.Blocks() {
			b := must(s.store.Get(context.Background(), s.about.Block(i).Node))
			if i%2 == 0 {
				b.End, b.Nonce, b.Version = until, "", b.Version+1
			}
			if b.Version > 0 {
				blocks = append(blocks, b)
			}
		}
		s.restore(blocks, time.Time{})
		return
	}
	s.grantsFrom(until)
	broken := must(stores.New(&breaking{s.objects, 1 + w.rng.IntN(2)}, onePage))
	if _, err := broken.Raise(context.Background(), until); err != nil &&
		!errors.Is(err, errNoAnswer) {
		panic(err) // nil: an earlier raise lasts
	}
	w.logf("the raise is interrupted")
	w.after(w.between(0, w.ttl), func() { s.again(until) })
}

// breaking is a connection that is lost after some writes.
type breaking struct {
	driver.Objects
	writes int
}

func (b *breaking) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	if b.writes--; b.writes < 0 {
		return driver.Object{}, errNoAnswer
	}
	return b.Objects.Write(ctx, name, data, version)
}

// again repeats a raise: before the time to which the store was raised, both are one raise.
func (s *server) again(first time.Time) {
	if s.about.ID == "" {
		return
	}
	d, err := s.store.Describe(context.Background())
	if err != nil && !errors.Is(err, lease.ErrRaising) {
		panic(err)
	}
	got := s.raiseTo(pick(s.w, first, s.afterLeases()))
	latest := s.Now().Truncate(time.Second).Add(time.Second) // the server sends whole seconds
	if lasts := d.Raised.After(latest.Add(protocol.MaxClockAhead)); lasts && got.After(d.Raised) {
		s.w.fail("postponed", "a repeated raise is to %s, the first one was to %s", text(got),
			text(d.Raised))
	}
}

func (s *server) raiseTo(until time.Time) time.Time {
	if s.w.wrong("each repeated raise has a new time") {
		s.restore(s.list(), time.Time{}) // which forgets the earlier raise
	}
	s.grantsFrom(until)
	return must(s.store.Raise(context.Background(), until))
}

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
	about lease.Description
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
	pinned := p.pinned
	serve := func(s *server) reply {
		switch {
		case s.about.ID == "":
			return reply{err: lease.ErrNoStore}
		case pinned != "" && s.about.ID != pinned && !w.wrong("continuing with a replaced store"):
			return reply{err: lease.ErrReplaced}
		}
		return apply(s)
	}
	r := ask(p, func() reply {
		s := p.server
		lost := reply{err: errNoAnswer, sent: w.now,
			wait: w.between(10*time.Millisecond, simTimeout)}
		again := func() { _ = serve(s) }
		if p.host.cut > w.now || w.chance(0.08) {
			if w.rng.IntN(2) == 0 { // not lost: it arrives after the client has given up
				w.after(simTimeout+w.late(), again)
			}
			return lost
		}
		if w.chance(0.05) { // arrives twice
			w.after(w.late(), again)
		}
		r := serve(s)
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

// Describe pins the store.
func (c client) Describe(ctx context.Context) (lease.Description, error) {
	got := c.call(ctx, func(s *server) reply {
		d, err := s.store.Describe(context.Background())
		return reply{about: d, err: err}
	})
	if got.err == nil && c.p.pinned == "" {
		c.p.pinned = got.about.ID
	}
	if c.w.wrong("secrets are not compared") {
		got.about.Secrets = nil
	}
	return got.about, got.err
}

func (c client) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w, p := c.w, c.p
	p.asked = append(p.asked, r.Nonce)
	acquire := func(s *server, r lease.Request) reply {
		g, err := s.acquire(r)
		if err != nil {
			return reply{err: err}
		}
		w.logf("process %d: granted node %d %s to %s, version %d", p.id, g.Node, text(g.Start),
			text(g.End), g.Version)
		return reply{grant: g, of: w.ledger.wrote(s, g, true)}
	}
	if p.ahead > 0 {
		// The clock is corrected before the next Acquire.
		early := r
		early.Now = r.Now.Add(p.ahead)
		if p.ahead = 0; !p.copying {
			w.after(w.between(0, w.ttl), func() {
				if s := p.server; s.about.ID == p.pinned {
					_ = acquire(s, early)
				}
			})
		}
		return lease.Grant{}, errNoAnswer
	}
	got := c.call(ctx, func(s *server) reply { return acquire(s, r) })
	if got.err == nil {
		p.grants = append(p.grants, got.of)
		w.ledger.acknowledged(p, got.of, r.Nonce)
	} else if w.wrong("a repeated Acquire is used at once") {
		p.again = r.Nonce
		p.keeper.ForgetTries()
	}
	if w.wrong("inclusive end") {
		got.grant.End = got.grant.End.Add(time.Second)
	}
	return got.grant, got.err
}

func (c client) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w, p := c.w, c.p
	p.about, p.proposed = g, append(p.proposed, r.Nonce)
	got := c.call(ctx, func(s *server) reply {
		before, _ := s.store.Get(context.Background(), g.Node)
		renewed, err := s.renew(g, before, r)
		if err != nil {
			return reply{err: err}
		}
		w.logf("process %d: renewed node %d to %s, version %d", p.id, renewed.Node,
			text(renewed.End), renewed.Version)
		return reply{grant: renewed, of: w.ledger.wrote(s, renewed, false),
			wrote: renewed.Version > before.Version}
	})
	switch {
	case got.err == nil:
		if !got.wrote {
			w.ledger.hears(p, got.of)
		}
		w.ledger.acknowledged(p, got.of, r.Nonce)
	case w.misreads() && errors.Is(got.err, lease.ErrLost):
		got.err = errNoAnswer // a refusal tells nothing about this renewal
	case w.wrong("assuming the requested end") && errors.Is(got.err, errNoAnswer):
		got.err, got.grant = nil, g
		got.grant.End, got.grant.Version, got.grant.Nonce = r.Now.Add(r.TTL).Truncate(time.Second),
			g.Version+1, r.Nonce
	}
	return got.grant, got.err
}

func (c client) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	w, p := c.w, c.p
	p.about = g
	if w.wrong("used seconds are returned") {
		unused = unused.Add(-time.Second)
	}
	return c.call(ctx, func(s *server) reply {
		err := s.release(g, next, unused)
		if err == nil {
			w.ledger.released(s, g, p, unused)
			w.logf("process %d: released node %d from %s", p.id, g.Node, text(unused))
		}
		return reply{err: err}
	}).err
}

func (c client) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	w, p := c.w, c.p
	got := c.call(ctx, func(s *server) reply {
		stored, err := s.store.Get(context.Background(), node)
		of := s.granted[node]
		return reply{grant: stored, of: of, freed: of != nil && of.returned(p), err: err}
	})
	if got.err != nil {
		return got.grant, got.err
	}
	mine := w.ledger.byNonce[p.about.Nonce]
	if w.ledger.foreign(p, got.grant.Nonce) || got.freed && got.of == mine {
		w.ledger.hears(p, mine)
	}
	return p.reads(got.grant), nil
}

func text(t time.Time) string { return t.UTC().Format("15:04:05") }
