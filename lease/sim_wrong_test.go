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
	store       func(s *server, blocks []lease.Grant, raised time.Time) *wrongStore
	reads       func(p *process, mine, stored lease.Grant) lease.Grant // how a client interprets Get
	generator   func(*process, lease.Grant) filler
	bursts      bool // many bursts
	resumes     bool // a restarted process asks with its former life's nonce
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
	half        bool // a raise that was interrupted is not repeated
	forgets     bool // a store fails over to a copy without the last writes
	oneSecret   bool // two stores grant the same nodes under one secret
	rollsOut    bool // a new store is rolled out under the old one's secret
	recreates   bool // stores are lost often, and created again
	impatient   bool // create does not wait with an existing secret
	creates     bool // a store that is lost creates itself
	unpinned    bool // a process continues with the store that replaced its own
	anySecret   bool // secrets are not compared
}

// wrongVariants must all be caught. They do not include a store that compares only nonces and not
// versions: no nonce is ever written twice, so that is harmless here. The conformance suite
// refuses it.
var wrongVariants = []variant{
	{name: "grants count from the last start", store: wrongly(func(s *wrongStore) {
		s.free = func(b driver.Block, now time.Time) bool { return b.Start.Unix() <= now.Unix() }
	})},
	{name: "grants include the last end", store: wrongly(func(s *wrongStore) {
		s.free = func(b driver.Block, now time.Time) bool { return b.End.Unix()-1 <= now.Unix() }
	})},
	{name: "inclusive end", inclusive: true},
	{name: "resuming a grant after a crash", resumes: true},
	{name: "state in three words", generator: wrongGenerator(wrongGen{threeWords: true})},
	{name: "no hold when the clock steps back", generator: wrongGenerator(wrongGen{noHold: true})},
	{name: "borrowing past the end", generator: wrongGenerator(wrongGen{pastEnd: true}), bursts: true},
	{name: "a store that forgets acknowledged grants", forgets: true},
	{name: "renewal checks neither nonce nor version", store: wrongly(func(s *wrongStore) { s.unchecked = true })},
	{name: "renewal writes nothing if the end stays", store: wrongly(func(s *wrongStore) { s.lazy = true })},
	{name: "renewal idempotent by its nonce", store: wrongly(func(s *wrongStore) { s.idempotent = true })},
	{name: "release leaves no nonce", store: wrongly(func(s *wrongStore) { s.emptied = true }), bursts: true},
	{name: "assuming the requested end", assumes: true},
	{name: "adopting anybody's renewal", reads: func(p *process, mine, stored lease.Grant) lease.Grant {
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
	{name: "a new store with the old secret at once", operated: true, rollsOut: true},
	{name: "a raise by a clock that is behind", operated: true, behind: true},
	{name: "an interrupted raise that is not repeated", operated: true, half: true},
	{name: "each repeated raise has a new time", operated: true, store: wrongly(func(s *wrongStore) { s.postpones = true })},
	{name: "renewals from a clock ahead", fast: true, store: wrongly(func(s *wrongStore) { s.timeless = true })},
	{name: "two stores with one secret", oneSecret: true},
	{name: "an existing secret without the wait", recreates: true, impatient: true},
	{name: "a store that creates itself", recreates: true, creates: true},
	{name: "continuing with a replaced store", recreates: true, unpinned: true},
	{name: "secrets are not compared", anySecret: true},
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
	*driver.Memory
	srv        *server
	free       func(b driver.Block, now time.Time) bool
	unchecked  bool
	lazy       bool
	idempotent bool
	emptied    bool
	timeless   bool // a renewal is not compared with the store's clock
	postpones  bool // a raise is not recorded
}

func wrongly(how func(*wrongStore)) func(*server, []lease.Grant, time.Time) *wrongStore {
	return func(srv *server, blocks []lease.Grant, raised time.Time) *wrongStore {
		s := &wrongStore{srv: srv}
		s.Memory = srv.memory(blocks, raised)
		how(s)
		return s
	}
}

// fill replaces the blocks.
func (s *wrongStore) fill(clock randflake.Clock, blocks []lease.Grant) {
	s.Memory = driver.NewMemory(driver.WithDescription(s.srv.about), driver.WithClock(clock), driver.WithBlocks(blocks))
}

func (s *wrongStore) list() []lease.Grant {
	blocks, err := s.List(context.Background())
	if err != nil {
		panic(err)
	}
	return blocks
}

// change changes the first written block for which change returns true.
func (s *wrongStore) change(change func(b *lease.Grant) bool) {
	blocks := s.list()
	for i := range blocks {
		if change(&blocks[i]) {
			break
		}
	}
	s.fill(trueTime{s.srv.w}, blocks)
}

func (s *wrongStore) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	repeated := slices.ContainsFunc(s.list(), func(b lease.Grant) bool { return b.Nonce == r.Nonce })
	if s.free != nil && !repeated {
		s.change(func(b *lease.Grant) bool {
			free := s.free(driver.Block(*b), r.Now)
			if free {
				b.End = time.Time{}
			}
			return free
		})
	}
	return s.Memory.Acquire(ctx, r)
}

func (s *wrongStore) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	stored, err := s.Get(ctx, g.Node)
	if err != nil {
		return stored, err
	}
	if s.unchecked {
		g.Nonce, g.Version = stored.Nonce, stored.Version
	}
	if s.idempotent && stored.Nonce == r.Nonce {
		return stored, nil
	}
	before := s.list()
	if s.timeless {
		s.fill(nil, before)
	}
	got, err := s.Memory.Renew(ctx, g, r)
	switch {
	case s.timeless:
		s.fill(trueTime{s.srv.w}, s.list())
	case s.lazy && err == nil && got.End.Equal(stored.End):
		s.fill(trueTime{s.srv.w}, before)
		return stored, nil
	}
	return got, err
}

func (s *wrongStore) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	err := s.Memory.Release(ctx, g, next, unused)
	if err == nil && s.emptied {
		s.change(func(b *lease.Grant) bool {
			mine := b.Node == g.Node
			if mine {
				b.Nonce = ""
			}
			return mine
		})
	}
	return err
}

func (s *wrongStore) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	if s.postpones {
		s.fill(trueTime{s.srv.w}, s.list()) // which forgets the earlier raise
	}
	return s.Memory.Raise(ctx, until)
}

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
	nonce  string
	known  bool // the store has the secret registered
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
	if !k.known {
		d, err := k.store.Describe(ctx)
		k.known = err == nil && slices.Contains(d.Secrets, lease.Fingerprint(k.p.secret.codec, d.ID))
		return 300 * time.Millisecond
	}
	if k.nonce == "" {
		k.nonce = k.p.nonce()
	}
	g, err := k.store.Acquire(ctx, lease.Request{Nonce: k.nonce, Now: clock.Now(), TTL: w.ttl})
	if err == nil && !k.closed {
		k.grant, k.gen, k.nonce = g, w.variant.generator(k.p, g), ""
	}
	return 300 * time.Millisecond
}

func (k *twinKeeper) Seal()                             { k.closed, k.gen = true, nil }
func (k *twinKeeper) GiveBackAll(context.Context) error { return nil }

// rightGenerator is the production generator in the twin. It shows that the simulator finds no
// mistake in the twin itself.
func rightGenerator(p *process, g lease.Grant) filler {
	gen, err := randflake.NewGenerator(p.secret.codec, g.Lease, randflake.WithClock(clock{p.w, p}))
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
		id, err := g.p.secret.codec.Encode(randflake.Parts{Time: at, Node: g.grant.Node, Sequence: uint32(seq + i)})
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
