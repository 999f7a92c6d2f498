package lease_test

import (
	"maps"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// ledger checks every ID that is generated: it can be decoded with the key of a history, it lies in
// a rectangle that was granted to its maker in that history, and it was not generated before. There
// are two exceptions:
//
//   - Copies of a process share a grant until one of them is proven for it: the store acknowledged
//     a write whose nonce was drawn after the copy was made, or an Acquire that was repeated after
//     it. Two proven copies never share an ID, nor do two that both know of each other: a copy
//     stops at the first answer that the store gives after the other's write.
//   - In a history to which a server was set back at its place, IDs may be equal.
//
// If the machine reports its restore, copies share nothing.
type ledger struct {
	w      *world
	made   int
	equal  []time.Duration // when IDs that may be equal were generated
	codecs map[string]*randflake.Codec
	drawn  map[string][]*life // the lives that drew a nonce
	pages  map[page][]*maker
}

// page has the IDs of a second in a history.
type page struct {
	history string
	second  int64
}

// grant identifies a grant.
type grant struct {
	history  string
	node     uint32
	acquired string
	start    int64
}

func grantOf(g lease.Grant) grant {
	return grant{g.Store, g.Node, g.Acquired, g.Start.Unix()}
}

// held is a grant as a process knows it.
type held struct {
	grant
	nodes uint32
	end   int64
}

// life is a process between two copies of it.
type life struct {
	process *process
	parent  *life // the life before the copy was made, common to both copies
	proven  map[grant]bool
	stopped map[grant]bool // it knows that it lost the grant
}

func newLife(p *process, parent *life) *life {
	l := &life{process: p, parent: parent, proven: map[grant]bool{}, stopped: map[grant]bool{}}
	if parent != nil {
		maps.Copy(l.stopped, parent.stopped)
	}
	return l
}

// descends reports whether l is other, or continues from its state.
func (l *life) descends(other *life) bool {
	for ; l != nil; l = l.parent {
		if l == other {
			return true
		}
	}
	return false
}

func (l *life) family() *life {
	for l.parent != nil {
		l = l.parent
	}
	return l
}

// perNode is the number of IDs of a node in a second.
const perNode = 1 << 17

// place is an ID's place among those of its second: its node and sequence.
func place(p randflake.Parts) uint64 {
	return uint64(p.Node)*perNode + uint64(p.Sequence)
}

// span is the places from first to before end.
type span struct{ first, end uint64 }

// maker is a life that generated IDs of a second with a grant, and those IDs.
type maker struct {
	life  *life
	g     grant
	spans []span
}

func (m *maker) overlaps(s span) bool {
	return slices.ContainsFunc(m.spans,
		func(o span) bool { return o.first < s.end && s.first < o.end })
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, codecs: map[string]*randflake.Codec{}, drawn: map[string][]*life{},
		pages: map[page][]*maker{}}
}

// codec returns the codec of a history's IDs.
func (l *ledger) codec(history string) *randflake.Codec {
	if l.codecs[history] == nil {
		l.codecs[history] = must(lease.HistoryCodec(testCodec, history))
	}
	return l.codecs[history]
}

// learn records what a store has answered.
func (p *process) learn(b lease.Grant) {
	i := slices.IndexFunc(p.grants, func(h held) bool { return h.grant == grantOf(b) })
	if i < 0 {
		if !slices.Contains(p.asked, b.Acquired) {
			return
		}
		i, p.grants = len(p.grants), append(p.grants, held{grant: grantOf(b), nodes: b.Nodes})
	}
	p.grants[i].end = max(p.grants[i].end, b.End.Unix())
}

// acknowledged records that the store answered p's own write with b. If it was a repeated Acquire,
// repeatedBy sent it.
func (l *ledger) acknowledged(p *process, b lease.Grant, repeatedBy *life) {
	if repeatedBy == p.life || slices.Contains(l.drawn[b.Nonce], p.life) {
		p.life.proven[grantOf(b)] = true
	}
}

// read records that p has read a block of which it holds a grant: if neither p nor its original
// drew the block's nonce, p must stop.
func (l *ledger) read(p *process, mine, stored lease.Grant) {
	by := l.drawn[stored.Nonce]
	if len(by) > 0 && !slices.ContainsFunc(by, p.life.descends) {
		p.life.stopped[grantOf(mine)] = true
	}
}

// add checks the IDs of one Fill, which have successive places in one second. It decodes the first
// and the last: package randflake tests each.
func (l *ledger) add(p *process, ids []randflake.ID, second time.Time) {
	l.made += len(ids)
	g, s := l.find(p, ids, second)
	if g == nil {
		l.w.fail("outside", "process %d made an ID of second %d which it was not granted", p.id,
			second.Unix())
		return
	}
	if p.life.stopped[*g] {
		l.w.fail("deaf", "process %d made an ID of node %d, second %d, although it knew that it "+
			"had lost the grant", p.id, g.node, second.Unix())
		return
	}
	at := page{g.history, second.Unix()}
	var mine *maker
	for _, m := range l.pages[at] {
		if m.life == p.life && m.g == *g {
			mine = m
		}
	}
	if mine == nil {
		mine = &maker{life: p.life, g: *g}
		l.pages[at] = append(l.pages[at], mine)
	}
	for _, m := range l.pages[at] {
		if !m.overlaps(s) {
			continue
		}
		if why := l.wrong(mine, m); why != "" {
			l.w.fail("duplicate", "process %d: history %s, node %d, second %d: process %d made "+
				"that ID before: %s", p.id, g.history, g.node, at.second, m.life.process.id, why)
			return
		}
	}
	if last := len(mine.spans) - 1; last >= 0 && mine.spans[last].end == s.first {
		mine.spans[last].end = s.end
	} else {
		mine.spans = append(mine.spans, s)
	}
}

// wrong returns why two lives must not have generated the same ID, or "" if they may.
func (l *ledger) wrong(a, b *maker) string {
	tainted := l.w.tainted[a.g.history]
	unproven := func(m *maker) bool { return !m.life.proven[m.g] }
	switch {
	case a.life.descends(b.life) || b.life.descends(a.life):
		if a.g != b.g && tainted {
			break // it was granted the same seconds again
		}
		return "they are the same process"
	case tainted:
	case l.w.vmclock:
		return "the machine reports restores"
	case a.life.family() != b.life.family():
		return "they are strangers"
	case !unproven(a) && !unproven(b):
		return "they are copies, but both are proven"
	case a.g != b.g:
		return "they are copies with different grants"
	}
	if tainted {
		l.equal = append(l.equal, l.w.now)
	}
	return ""
}

// find returns the grant of p to which IDs of a second belong, and their places.
func (l *ledger) find(p *process, ids []randflake.ID, second time.Time) (*grant, span) {
	for _, g := range slices.Backward(p.grants) {
		codec := l.codec(g.history)
		first, last := codec.Decode(ids[0]), codec.Decode(ids[len(ids)-1])
		s := span{place(first), place(last) + 1}
		if first.Time.Equal(second) && last.Time.Equal(second) &&
			s.end-s.first == uint64(len(ids)) && s.first >= uint64(g.node)*perNode &&
			s.end <= uint64(g.node+g.nodes)*perNode &&
			second.Unix() >= g.start && second.Unix() < g.end {
			return &g.grant, s
		}
	}
	return nil, span{}
}
