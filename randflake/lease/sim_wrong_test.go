package lease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// variant is a wrong way to do it. The zero variant is the production code.
type variant struct {
	name      string
	store     func(*world) simStore
	generator func(*process, Grant) filler
	bursts    bool // many of them
	resumes   bool // a restarted process asks with its former life's holder
	inclusive bool // a grant's end is taken to be its own
	assumes   bool // a renewal without an answer is taken for done
	forgets   bool // a store fails over to a copy without the last writes
	oneSecret bool // two hosts with files of their own, one secret, the same nodes
	impatient bool // a new file in place of a lost one grants at once
}

// wrongVariants must all be caught.
var wrongVariants = []variant{
	{name: "granting on the last start", store: wrongly(func(s *wrongStore) {
		s.free = func(b Block, now time.Time) bool { return b.Start.Unix() <= now.Unix() }
	})},
	{name: "granting on the last end as if it were used up", store: wrongly(func(s *wrongStore) {
		s.free = func(b Block, now time.Time) bool { return b.GrantedUntil.Unix()-1 <= now.Unix() }
	})},
	{name: "inclusive end", inclusive: true},
	{name: "resuming a grant after a crash", resumes: true},
	{name: "state in three words", generator: wrongGenerator(wrongGen{threeWords: true})},
	{name: "no hold when the clock steps back", generator: wrongGenerator(wrongGen{noHold: true})},
	{name: "borrowing past the end", generator: wrongGenerator(wrongGen{pastEnd: true}), bursts: true},
	{name: "a store that forgets acknowledged grants", forgets: true},
	{name: "renewal without a check of the version", store: wrongly(func(s *wrongStore) { s.unchecked = true })},
	{name: "assuming the end that was asked for", assumes: true},
	{name: "two new files and one secret", oneSecret: true},
	{name: "a new file that does not wait", impatient: true},
}

// wrongStore is Memory with another rule.
type wrongStore struct {
	*Memory
	free      func(b Block, now time.Time) bool
	unchecked bool
}

func wrongly(how func(*wrongStore)) func(*world) simStore {
	return func(w *world) simStore {
		s := &wrongStore{Memory: NewMemory(WithNodeRange(w.nodes), WithStoreClock(w.time)), free: Block.Free}
		how(s)
		return s
	}
}

func (s *wrongStore) Acquire(_ context.Context, r Request) (Grant, error) {
	if err := r.Check(s.now()); err != nil {
		return Grant{}, err
	}
	for _, b := range s.blocks {
		if b.Holder == r.Holder {
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
	return Grant{}, ErrNoFreeNode
}

func (s *wrongStore) Renew(ctx context.Context, g Grant, end time.Time) (Grant, error) {
	if !s.unchecked {
		return s.Memory.Renew(ctx, g, end)
	}
	i, err := s.nodes.Index(g.Node)
	if err != nil {
		return Grant{}, err
	}
	b := &s.blocks[i]
	b.GrantedUntil = later(b.GrantedUntil, capEnd(end))
	b.Version++
	g.End, g.Version = b.GrantedUntil, b.Version
	return g, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// filler is what a generator does.
type filler interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// twinKeeper is a plain Keeper without renewals, for generators that are not
// production's. It drops no grant when a clock steps: the generator alone
// keeps it from harm.
type twinKeeper struct {
	p     *process
	store client

	gen    filler
	grant  Grant
	holder string
	closed bool
}

func (k *twinKeeper) Fill(dst []randflake.ID) (int, time.Time, error) {
	switch {
	case k.closed:
		return 0, time.Time{}, ErrClosed
	case k.gen == nil:
		return 0, time.Time{}, ErrNoLease
	}
	return k.gen.Fill(dst)
}

func (k *twinKeeper) step(ctx context.Context) time.Duration {
	w := k.p.w
	clock := clock{w, k.p}
	if k.gen != nil && clock.Now().Before(k.grant.End) || k.closed {
		return 300 * time.Millisecond
	}
	if k.holder == "" {
		k.holder = NewHolder()
	}
	g, err := k.store.Acquire(ctx, Request{Holder: k.holder, Now: clock.Now(), TTL: w.ttl})
	if err == nil && !k.closed {
		k.grant, k.gen, k.holder = g, w.variant.generator(k.p, g), ""
	}
	return 300 * time.Millisecond
}

func (k *twinKeeper) seal()                             { k.closed, k.gen = true, nil }
func (k *twinKeeper) giveBackAll(context.Context) error { return nil }

// rightGenerator is production's in the twin: the twin itself is not what the
// simulator catches.
func rightGenerator(p *process, g Grant) filler {
	gen, err := randflake.NewGenerator(p.w.ledger.codec, g.Lease, randflake.WithClock(clock{p.w, p}.Now))
	if err != nil {
		panic(err)
	}
	return gen
}

// wrongGen is a generator with one thing wrong; without, it is right. Its
// seconds are small, so that a burst is soon over.
type wrongGen struct {
	threeWords bool
	noHold     bool
	pastEnd    bool
}

const wrongSpace = 1 << 10 // IDs a second

func wrongGenerator(how wrongGen) func(*process, Grant) filler {
	return func(p *process, g Grant) filler {
		gen := &wrongFiller{wrongGen: how, p: p, grant: g}
		gen.word.Store(uint64(g.Start.Unix()) * wrongSpace)
		return gen
	}
}

type wrongFiller struct {
	wrongGen
	p     *process
	grant Grant

	word        atomic.Uint64 // second and sequence
	second, seq atomic.Uint64 // the same in words of their own
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
			g.p.w.pause()
			g.second.Store(now)
		}
		g.p.w.pause()
		seq := g.seq.Add(n) - n
		if seq+n > wrongSpace {
			return 0, 0, randflake.ErrExhausted
		}
		g.p.w.pause()
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
