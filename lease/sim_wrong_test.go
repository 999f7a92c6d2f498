package lease_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// variant is a wrong variant of the code. The zero variant is the production code.
type variant struct {
	name        string
	free        func(b lease.Grant, now int64) bool                    // which blocks are granted
	reads       func(p *process, mine, stored lease.Grant) lease.Grant // how a client interprets Get
	generator   *wrongGen                                              // instead of production's
	bursts      bool                                                   // many bursts
	unchecked   bool                                                   // a renewal compares nothing
	lazy        bool                                                   // a renewal with the same end writes nothing
	idempotent  bool                                                   // a repeated renewal succeeds
	emptied     bool                                                   // a release leaves no nonce
	timeless    bool                                                   // a renewal is not compared with the store's clock
	postpones   bool                                                   // a raise is not recorded
	resumes     bool                                                   // a restarted process asks with its former life's nonce
	inclusive   bool                                                   // the second at a grant's end is used
	assumes     bool                                                   // a renewal without an answer counts as done
	trusts      bool                                                   // a grant from a repeated nonce is used at once
	givesBack   bool                                                   // the last used second is returned
	deaf        bool                                                   // a reported restore is ignored
	kernelAlone bool                                                   // nonces depend on the kernel alone, which may not have learnt of a restore
	hasty       bool                                                   // nonces are drawn at once after a restore
	operated    bool                                                   // operators are busy
	fast        bool                                                   // clocks are ahead, and run ahead further
	behind      bool                                                   // an operator goes by a clock that is behind
	half        bool                                                   // a raise that was interrupted is not repeated
	forgets     bool                                                   // a store fails over to a copy without the last writes
	oneSecret   bool                                                   // two stores grant the same nodes under one secret
	rollsOut    bool                                                   // a new store is rolled out under the old one's secret
	recreates   bool                                                   // stores are lost often, and created again
	impatient   bool                                                   // create does not wait with an existing secret
	creates     bool                                                   // a store that is lost creates itself
	unpinned    bool                                                   // a process continues with the store that replaced its own
	anySecret   bool                                                   // secrets are not compared
}

// wrongVariants must all be caught. They do not include a store that compares only nonces and not
// versions: no nonce is ever written twice, so that is harmless here. The conformance suite
// refuses it.
var wrongVariants = []variant{
	{name: "grants count from the last start", free: func(b lease.Grant, now int64) bool { return b.Start.Unix() <= now }},
	{name: "grants include the last end", free: func(b lease.Grant, now int64) bool { return b.End.Unix()-1 <= now }},
	{name: "inclusive end", inclusive: true},
	{name: "resuming a grant after a crash", resumes: true},
	{name: "state in three words", generator: &wrongGen{threeWords: true}},
	{name: "no hold when the clock steps back", generator: &wrongGen{noHold: true}},
	{name: "borrowing past the end", generator: &wrongGen{pastEnd: true}, bursts: true},
	{name: "a store that forgets acknowledged grants", forgets: true},
	{name: "renewal checks neither nonce nor version", unchecked: true},
	{name: "renewal writes nothing if the end stays", lazy: true},
	{name: "renewal idempotent by its nonce", idempotent: true},
	{name: "release leaves no nonce", emptied: true, bursts: true},
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
	{name: "each repeated raise has a new time", operated: true, postpones: true},
	{name: "renewals from a clock ahead", fast: true, timeless: true},
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

// edit changes the first written block for which change returns true.
func (s *server) edit(change func(b *lease.Grant) bool) {
	blocks := s.list()
	for i := range blocks {
		if change(&blocks[i]) {
			s.restore(blocks, s.about.Raised)
			return
		}
	}
}

func (s *server) acquire(r lease.Request) (lease.Grant, error) {
	repeated := slices.ContainsFunc(s.list(), func(b lease.Grant) bool { return b.Nonce == r.Nonce })
	if free := s.w.variant.free; free != nil && !repeated {
		s.edit(func(b *lease.Grant) bool {
			yes := free(*b, r.Now.Unix())
			if yes {
				b.End = time.Time{}
			}
			return yes
		})
	}
	return s.store.Acquire(context.Background(), r)
}

func (s *server) renew(g, stored lease.Grant, r lease.Request) (lease.Grant, error) {
	v := s.w.variant
	if v.unchecked {
		g.Nonce, g.Version = stored.Nonce, stored.Version
	}
	longer := r.Now.Add(r.TTL).Truncate(time.Second).After(stored.End)
	if v.idempotent && stored.Nonce == r.Nonce || v.lazy && stored == g && !longer {
		return stored, nil
	}
	if ahead := r.Now.Sub(s.w.time()); v.timeless && ahead > 0 {
		s.w.now += ahead
		defer func() { s.w.now -= ahead }()
	}
	return s.store.Renew(context.Background(), g, r)
}

func (s *server) release(g lease.Grant, next string, unused time.Time) error {
	err := s.store.Release(context.Background(), g, next, unused)
	if err == nil && s.w.variant.emptied {
		s.edit(func(b *lease.Grant) bool {
			mine := b.Node == g.Node
			if mine {
				b.Nonce = ""
			}
			return mine
		})
	}
	return err
}

// filler makes IDs.
type filler interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// wrongGen describes what is wrong with a generator; its zero value is a right one. Its seconds
// have few IDs, so that a burst ends soon.
type wrongGen struct {
	threeWords bool
	noHold     bool
	pastEnd    bool
}

const wrongSpace = 1 << 10 // IDs a second

// wrongSource makes IDs with a twin of the generator for each grant of a Keeper.
type wrongSource struct {
	wrongGen
	p    *process
	made map[*lease.Term]*wrongFiller
}

func (s *wrongSource) Fill(dst []randflake.ID) (int, time.Time, error) {
	if s.p.closing {
		return 0, time.Time{}, lease.ErrClosed
	}
	for _, t := range s.p.keeper.Terms() {
		if !t.Proven() || t.Over() {
			continue
		}
		if s.made[t] == nil {
			s.made[t] = &wrongFiller{wrongGen: s.wrongGen, p: s.p, term: t}
			s.made[t].word.Store(uint64(t.Grant().Start.Unix()) * wrongSpace)
		}
		return s.made[t].Fill(dst)
	}
	return 0, time.Time{}, lease.ErrNoLease
}

type wrongFiller struct {
	wrongGen
	p    *process
	term *lease.Term

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
		id, err := g.p.secret.Encode(randflake.Parts{Time: at, Node: g.term.Grant().Node, Sequence: uint32(seq + i)})
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
	case g.term.Over():
		return randflake.ErrSealed
	case second < uint64(g.term.Grant().Start.Unix()):
		return randflake.ErrLeaseNotStarted
	case last >= uint64(g.term.Grant().End.Unix()):
		return randflake.ErrLeaseExpired
	case second > now+2:
		return randflake.ErrExhausted
	}
	return nil
}
