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
	secret  *randflake.Codec  // of the store
	file    *randflake.Codec  // what processes find in their secret file
	about   lease.Description // of the store; without an ID there is none
	objects *memstore.Objects
	store   stores.Store
	granted map[uint32]*granted // the last grant of each block, by its first node
	clock   time.Duration       // how far its clock is ahead
	closed  bool                // no process can reach it
	spent   bool                // its clock was ahead: blocks may be granted far in the future
}

// wrongClock sets the clock of another machine, which may be wrong by hours.
func (s *server) wrongClock() {
	w := s.w
	s.clock = pick(w, 0, w.between(0, 26*time.Hour), -w.between(0, 26*time.Hour))
	s.spent = s.spent || s.clock > 0
}

func (w *world) newServer(with *randflake.Codec, nodes lease.Description) *server {
	s := &server{w: w}
	s.create(with, nodes)
	s.file = with
	return s
}

// create creates a store with a secret.
func (s *server) create(with *randflake.Codec, nodes lease.Description) {
	s.about = nodes
	s.about.ID, s.about.Replaced = s.w.newID(), ""
	s.about.LongestTTL = (s.w.ttl + time.Second - 1).Truncate(time.Second)
	s.about.Secrets = []string{s.about.Fingerprint(with)}
	s.secret, s.granted = with, map[uint32]*granted{}
	s.objects = &memstore.Objects{Clock: s.Now}
	s.store = must(stores.New(s.objects, onePage))
	if err := s.store.Create(context.Background(), s.about); err != nil {
		panic(err)
	}
}

func (w *world) newID() string {
	w.stores++
	return fmt.Sprintf("%032x", w.stores)
}

// onePage is a layout whose first page has every block.
var onePage = driver.Layout{Name: "simulated", BlocksPerPage: 1 << 17}

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

// Now is the store's clock.
func (s *server) Now() time.Time { return s.w.time().Add(s.clock) }

func (s *server) list() []lease.Grant { return must(s.store.List(context.Background())) }

// backup returns a function that loads the present state of the store and of its grants to a
// server.
func (s *server) backup() (load func(*server)) {
	ctx := context.Background()
	objects, was := must(s.objects.List(ctx)), *s
	live, saved := maps.Clone(s.granted), map[uint32]granted{}
	for node, g := range live {
		saved[node] = *g
	}
	return func(to *server) {
		to.objects.Delete("")
		for name, o := range objects {
			must(to.objects.Write(ctx, name, o.Data, ""))
		}
		to.about, to.secret, to.granted = was.about, was.secret, maps.Clone(live)
		for node, was := range saved {
			if *live[node] != was { // its holder knows of later writes
				to.granted[node] = &was
			}
		}
	}
}

// rollOut rolls out a store with a new secret at another address, process by process: a new one, or
// a copy of the old one, which stays. Sometimes the rollout ends halfway, or is undone.
func (s *server) rollOut() {
	w := s.w
	with := w.newSecret()
	if w.wrong("a new store with the old secret at once") {
		with = s.secret
	}
	next := w.newServer(with, s.about)
	w.logf("a store with a new secret is rolled out")
	if w.rng.IntN(2) == 0 && !w.wrong("a new store with the old secret at once") {
		s.backup()(next)
		w.logf("it is a copy")
		next.wrongClock()
		if !w.wrong("a copy with the old secret") {
			next.replace()
		}
		next.file = next.secret
	}
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

// lose loses the store, as when its table is dropped. Then an operator creates another store, whose
// new secret processes get some time later.
func (s *server) lose() {
	w, nodes := s.w, s.about
	w.logf("a store is lost")
	if w.wrong("a store that creates itself") {
		s.create(s.secret, nodes)
		return
	}
	s.about = lease.Description{}
	w.after(pick(w, 0, w.between(0, w.ttl)), func() {
		s.create(w.newSecret(), nodes)
		w.logf("a store is created with a new secret")
		s.distribute()
	})
}

// distribute gives processes the store's secret some time later.
func (s *server) distribute() {
	secret := s.secret
	s.w.after(s.w.between(0, 2*s.w.ttl), func() {
		if s.secret == secret {
			s.file = secret
		}
	})
}

// operator is one who replaces the secret of a store, with what the unfinished secret file says.
type operator struct {
	id     string
	secret *randflake.Codec
}

// replace gives the store a new secret, as an operator does after a restore. No process reaches the
// store before that has succeeded. Sometimes the command is interrupted, and another operator gives
// the same command, or the same one repeats it.
func (s *server) replace() {
	w, old := s.w, s.about.ID
	one, other := operator{w.newID(), w.newSecret()}, operator{w.newID(), w.newSecret()}
	if w.wrong("histories are numbered in the store") {
		one = w.numbered(old)
		other = one
	}
	run := func(o operator, objects driver.Objects) error {
		fingerprint := lease.Description{ID: o.id}.Fingerprint(o.secret)
		return must(stores.New(objects, onePage)).Replace(context.Background(), old, o.id,
			fingerprint)
	}
	finish := func(by, refused operator) {
		if err := run(by, s.objects); err != nil {
			by, refused = refused, by
			if err := run(by, s.objects); err != nil {
				panic(err)
			}
		}
		if err := run(refused, s.objects); by != refused && !errors.Is(err, lease.ErrReplaced) {
			w.fail("replaced twice", "the second operator's command returns %v", err)
		}
		s.about = must(s.store.Describe(context.Background()))
		s.secret, s.granted = by.secret, map[uint32]*granted{}
		s.closed, s.spent = false, s.clock > 0 // no block is granted yet
		w.logf("the secret of a store is replaced")
		s.distribute()
	}
	if s.closed = true; w.rng.IntN(2) == 0 {
		finish(one, other)
		return
	}
	if err := run(one, &breaking{s.objects, w.rng.IntN(3)}); err != nil &&
		!errors.Is(err, errNoAnswer) {
		panic(err)
	}
	w.logf("the replacement of a secret is interrupted")
	if w.rng.IntN(2) == 0 {
		one, other = other, one
	}
	w.after(w.between(0, w.ttl), func() { finish(one, other) })
}

// numbered returns the history after the one with an ID, if the store counts them.
func (w *world) numbered(old string) operator {
	if w.histories[old].secret == nil {
		w.histories[old] = operator{old[1:] + "1", w.newSecret()}
	}
	return w.histories[old]
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
	serve := func(s *server) reply {
		switch {
		case s.closed:
			return reply{err: errNoAnswer}
		case s.about.ID == "":
			return reply{err: lease.ErrNoStore}
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

func (c client) Describe(ctx context.Context) (lease.Description, error) {
	got := c.call(ctx, func(s *server) reply {
		d, err := s.store.Describe(context.Background())
		return reply{about: d, err: err}
	})
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
				if s := p.server; s.about.ID != "" && !s.closed {
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
		before, _ := s.store.Get(context.Background(), g)
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

func (c client) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	w, p := c.w, c.p
	got := c.call(ctx, func(s *server) reply {
		stored, err := s.store.Get(context.Background(), g)
		of := s.granted[g.Node]
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
