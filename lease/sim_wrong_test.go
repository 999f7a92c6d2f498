package lease_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// variant is a wrong variant of the code. The zero variant is the production code.
type variant struct {
	name        string
	store       func(*server, []lease.Block) simStore
	reads       func(p *process, mine, stored lease.Grant) lease.Grant // how a client interprets Get
	generator   func(*process, lease.Grant) filler
	bursts      bool // many bursts
	resumes     bool // a restarted process asks with its former life's holder
	inclusive   bool // the second at a grant's end is used
	assumes     bool // a renewal without an answer counts as done
	trusts      bool // a grant from a repeated nonce is used at once
	givesBack   bool // the last used second is returned
	deaf        bool // a reported restore is ignored
	kernelAlone bool // nonces depend on the kernel alone, which may not have learnt of a restore
	hasty       bool // nonces are drawn at once after a restore
	operated    bool // operators are busy
	fast        bool // clocks are ahead, and run ahead further
	behind      bool // an operator goes by a clock that is behind
	moves       bool // a new store replaces another one at once
	forgets     bool // a store fails over to a copy without the last writes
	oneSecret   bool // two hosts with separate files, one secret, the same nodes
	impatient   bool // a new file in place of a lost one grants at once
}

// wrongVariants must all be caught. They do not include a store that compares only holders and not
// versions: no nonce is ever written twice, so that is harmless here. The conformance suite
// refuses it.
var wrongVariants = []variant{
	{name: "grants count from the last start", store: wrongly(func(s *wrongStore) {
		s.free = func(b driver.Block, now time.Time) bool { return b.Start.Unix() <= now.Unix() }
	})},
	{name: "grants include the last end", store: wrongly(func(s *wrongStore) {
		s.free = func(b driver.Block, now time.Time) bool { return b.GrantedUntil.Unix()-1 <= now.Unix() }
	})},
	{name: "inclusive end", inclusive: true},
	{name: "resuming a grant after a crash", resumes: true},
	{name: "state in three words", generator: wrongGenerator(wrongGen{threeWords: true})},
	{name: "no hold when the clock steps back", generator: wrongGenerator(wrongGen{noHold: true})},
	{name: "borrowing past the end", generator: wrongGenerator(wrongGen{pastEnd: true}), bursts: true},
	{name: "a store that forgets acknowledged grants", forgets: true},
	{name: "renewal checks neither holder nor version", store: wrongly(func(s *wrongStore) { s.unchecked = true })},
	{name: "renewal writes nothing if the end stays", store: wrongly(func(s *wrongStore) { s.lazy = true })},
	{name: "renewal idempotent by its nonce", store: wrongly(func(s *wrongStore) { s.idempotent = true })},
	{name: "release leaves no holder", store: wrongly(func(s *wrongStore) { s.emptied = true }), bursts: true},
	{name: "assuming the requested end", assumes: true},
	{name: "adopting any holder's renewal", reads: func(p *process, mine, stored lease.Grant) lease.Grant {
		if stored.Start.Equal(mine.Start) {
			return adopted(p, mine, stored)
		}
		return stored
	}},
	{name: "the start is not compared", reads: func(p *process, mine, stored lease.Grant) lease.Grant {
		if slices.Contains(p.asked, stored.Nonce) || slices.Contains(p.proposed, stored.Nonce) {
			return adopted(p, mine, stored)
		}
		return stored
	}},
	{name: "sealing only if the start is unchanged", reads: func(_ *process, mine, stored lease.Grant) lease.Grant {
		if !stored.Start.Equal(mine.Start) {
			return mine
		}
		return stored
	}},
	{name: "a repeated Acquire is used at once", trusts: true},
	{name: "used seconds are returned", givesBack: true, bursts: true},
	{name: "a restored machine continues", deaf: true},
	{name: "nonces of the kernel alone", kernelAlone: true},
	{name: "nonces drawn at once after a restore", hasty: true},
	{name: "a new store in place of another one", operated: true, moves: true},
	{name: "the operator's own clock", operated: true, behind: true},
	{name: "renewals from a clock ahead", operated: true, fast: true, store: wrongly(func(s *wrongStore) { s.timeless = true })},
	{name: "two new files with one secret", oneSecret: true},
	{name: "a new file that does not wait", impatient: true},
}

// adopted makes a newer version look like a renewal that p proposed.
func adopted(p *process, mine, stored lease.Grant) lease.Grant {
	if stored.Version > mine.Version {
		stored.Start, stored.Nonce, stored.Version = mine.Start, p.proposed[len(p.proposed)-1], mine.Version+1
	}
	return stored
}

// wrongStore is Memory with another rule.
type wrongStore struct {
	w          *world
	nodes      driver.NodeRange
	blocks     []driver.Block
	free       func(b driver.Block, now time.Time) bool
	unchecked  bool
	lazy       bool
	idempotent bool
	emptied    bool
	timeless   bool // a renewal is not compared with the store's clock
}

func wrongly(how func(*wrongStore)) func(*server, []lease.Block) simStore {
	return func(srv *server, blocks []lease.Block) simStore {
		s := &wrongStore{w: srv.w, nodes: srv.nodes, free: driver.Block.Free}
		for i := range s.nodes.Blocks() {
			s.blocks = append(s.blocks, s.nodes.Block(i))
		}
		for _, b := range blocks {
			*s.block(b.Node) = driver.Block(b)
		}
		how(s)
		return s
	}
}

func (s *wrongStore) block(node uint32) *driver.Block {
	i, err := s.nodes.Index(node)
	if err != nil {
		panic(err)
	}
	return &s.blocks[i]
}

func (s *wrongStore) Acquire(_ context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, s.w.time()); err != nil {
		return lease.Grant{}, err
	}
	for _, b := range s.blocks {
		if b.Nonce == r.Nonce {
			return b.Grant(), nil
		}
	}
	for i, b := range s.blocks {
		if s.free(b, r.Now) {
			b.GrantedUntil = time.Time{}
			b, err := b.Acquire(r)
			s.blocks[i] = b
			return b.Grant(), err
		}
	}
	return lease.Grant{}, lease.ErrNoFreeNode
}

func (s *wrongStore) Renew(_ context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	now := s.w.time()
	if s.timeless {
		now = time.Time{}
	}
	if err := driver.CheckRequest(r, now); err != nil {
		return lease.Grant{}, err
	}
	b := s.block(g.Node)
	if s.unchecked {
		g.Nonce, g.Version = b.Nonce, b.Version
	}
	if s.idempotent && b.Nonce == r.Nonce {
		return b.Grant(), nil
	}
	after, err := b.Renew(g, r)
	if s.lazy && err == nil && after.GrantedUntil.Equal(b.GrantedUntil) {
		return b.Grant(), nil
	}
	return s.put(after, err)
}

func (s *wrongStore) Release(_ context.Context, g lease.Grant, next string, unused time.Time) error {
	after, err := s.block(g.Node).Release(g, next, unused)
	if s.emptied {
		after.Nonce = ""
	}
	_, err = s.put(after, err)
	return err
}

func (s *wrongStore) put(b driver.Block, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	*s.block(b.Node) = b
	return b.Grant(), nil
}

func (s *wrongStore) Get(_ context.Context, node uint32) (lease.Grant, error) {
	return s.block(node).Grant(), nil
}

func (s *wrongStore) List(context.Context) ([]lease.Block, error) {
	var written []lease.Block
	for _, b := range s.blocks {
		if b.Version > 0 {
			written = append(written, lease.Block(b))
		}
	}
	return written, nil
}

func (s *wrongStore) Raise(_ context.Context, until time.Time) error {
	for i, b := range s.blocks {
		s.blocks[i] = b.Raise(until)
	}
	return nil
}

func (s *wrongStore) Time(context.Context) (time.Time, error) { return time.Time{}, nil }

// filler is a generator.
type filler interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// twinKeeper is a plain Keeper without renewals, for wrong generators. It does not drop grants
// when a clock steps: only the generator prevents duplicates.
type twinKeeper struct {
	p     *process
	store client

	gen    filler
	grant  lease.Grant
	holder string
	closed bool
}

func (k *twinKeeper) Fill(dst []randflake.ID) (int, time.Time, error) {
	switch {
	case k.closed:
		return 0, time.Time{}, lease.ErrClosed
	case k.gen == nil:
		return 0, time.Time{}, lease.ErrNoLease
	}
	return k.gen.Fill(dst)
}

func (k *twinKeeper) Step(ctx context.Context) time.Duration {
	w := k.p.w
	clock := clock{w, k.p}
	if k.gen != nil && clock.Now().Before(k.grant.End) || k.closed {
		return 300 * time.Millisecond
	}
	if k.holder == "" {
		k.holder = k.p.nonce()
	}
	g, err := k.store.Acquire(ctx, lease.Request{Nonce: k.holder, Now: clock.Now(), TTL: w.ttl})
	if err == nil && !k.closed {
		k.grant, k.gen, k.holder = g, w.variant.generator(k.p, g), ""
	}
	return 300 * time.Millisecond
}

func (k *twinKeeper) Seal()                             { k.closed, k.gen = true, nil }
func (k *twinKeeper) GiveBackAll(context.Context) error { return nil }

// rightGenerator is the production generator in the twin. It shows that the simulator finds no
// mistake in the twin itself.
func rightGenerator(p *process, g lease.Grant) filler {
	gen, err := randflake.NewGenerator(p.w.ledger.codec, g.Lease, randflake.WithClock(clock{p.w, p}))
	if err != nil {
		panic(err)
	}
	return gen
}

// wrongGen describes what is wrong with a generator; its zero value is a right one. Its seconds
// have few IDs, so that a burst ends soon.
type wrongGen struct {
	threeWords bool
	noHold     bool
	pastEnd    bool
}

const wrongSpace = 1 << 10 // IDs a second

func wrongGenerator(how wrongGen) func(*process, lease.Grant) filler {
	return func(p *process, g lease.Grant) filler {
		gen := &wrongFiller{wrongGen: how, p: p, grant: g}
		gen.word.Store(uint64(g.Start.Unix()) * wrongSpace)
		return gen
	}
}

type wrongFiller struct {
	wrongGen
	p     *process
	grant lease.Grant

	word        atomic.Uint64 // second and sequence in one word
	second, seq atomic.Uint64 // the same in separate words
}

func (g *wrongFiller) Fill(dst []randflake.ID) (int, time.Time, error) {
	n := uint64(min(len(dst), wrongSpace))
	second, seq, err := g.reserve(n)
	if err != nil {
		return 0, time.Time{}, err
	}
	at := time.Unix(int64(second), 0)
	for i := range n {
		id, err := g.p.w.ledger.codec.Encode(randflake.Parts{Time: at, Node: g.grant.Node, Sequence: uint32(seq + i)})
		if err != nil {
			return 0, time.Time{}, err
		}
		dst[i] = id
	}
	if int(n) < len(dst) {
		err = randflake.ErrExhausted
	}
	return int(n), at, err
}

func (g *wrongFiller) reserve(n uint64) (second, seq uint64, err error) {
	clock := clock{g.p.w, g.p}
	if g.threeWords {
		now := uint64(clock.Now().Unix())
		if err := g.check(now, now); err != nil {
			return 0, 0, err
		}
		if now > g.second.Load() {
			g.seq.Store(0)
			g.p.pause()
			g.second.Store(now)
		}
		g.p.pause()
		seq := g.seq.Add(n) - n
		if seq+n > wrongSpace {
			return 0, 0, randflake.ErrExhausted
		}
		g.p.pause()
		return g.second.Load(), seq, nil
	}
	for {
		old := g.word.Load()
		now := uint64(clock.Now().Unix())
		word := max(old, now*wrongSpace)
		if g.noHold && now < old/wrongSpace {
			word = now * wrongSpace
		}
		if left := wrongSpace - word%wrongSpace; n > left {
			word += left
		}
		if err := g.check(word/wrongSpace, now); err != nil {
			return 0, 0, err
		}
		if g.word.CompareAndSwap(old, word+n) {
			return word / wrongSpace, word % wrongSpace, nil
		}
	}
}

func (g *wrongFiller) check(second, now uint64) error {
	last := second
	if g.pastEnd {
		last = now
	}
	switch {
	case second < uint64(g.grant.Start.Unix()):
		return randflake.ErrLeaseNotStarted
	case last >= uint64(g.grant.End.Unix()):
		return randflake.ErrLeaseExpired
	case second > now+2:
		return randflake.ErrExhausted
	}
	return nil
}
