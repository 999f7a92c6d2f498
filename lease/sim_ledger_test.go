package lease_test

import (
	"maps"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// ledger checks every ID that is made: it can be decoded, it lies in a rectangle
// that was granted to its maker, and it was not made before under the same secret. There are two
// exceptions:
//
//   - Copies of a process share a grant until one of them has a write that the
//     store acknowledged and whose nonce was drawn after the copy was made: that
//     one is proven for the grant. Two proven copies never share an ID, nor do
//     two that both know of each other: a copy stops at the first answer that
//     the store gives after the other's write.
//   - If a copy returns a grant, the other copies may share IDs with the next
//     holder, until they get an answer from the store.
//
// If the machine reports its restore, copies share nothing.
type ledger struct {
	w       *world
	made    int
	fills   int
	byNonce map[string]*granted // the grant for which a nonce was written
	drawn   map[string][]*life  // the lives that drew a nonce
	pages   map[page][]*maker
}

// granted is a grant as a store wrote it.
type granted struct {
	node, nodes uint32
	start, end  int64
	nonce       string // the last one written
	freed       int64  // the first returned second
	freedBy     *life  // nil: not returned
}

// life is a process between two copies of it.
type life struct {
	process *process
	parent  *life // the life before the copy was made, common to both copies
	proven  map[*granted]bool
	stopped map[*granted]time.Duration
}

func newLife(p *process, parent *life) *life {
	l := &life{process: p, parent: parent, proven: map[*granted]bool{},
		stopped: map[*granted]time.Duration{}}
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

// page is the IDs of a second under a secret. An ID's place in it is its node and sequence.
type page struct {
	secret *randflake.Codec
	second int64
}

func place(p randflake.Parts) uint64 {
	return uint64(p.Node)*perNode + uint64(p.Sequence)
}

// span is the places from first to before end.
type span struct{ first, end uint64 }

// maker is a life that generated IDs of a page with a grant, and those IDs.
type maker struct {
	life  *life
	g     *granted
	spans []span
}

func (m *maker) overlaps(s span) bool {
	return slices.ContainsFunc(m.spans,
		func(o span) bool { return o.first < s.end && s.first < o.end })
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, byNonce: map[string]*granted{}, drawn: map[string][]*life{},
		pages: map[page][]*maker{}}
}

// wrote records what a process has written just now. An Acquire has its nonce, a Release no owner.
func (l *ledger) wrote(s *server, b lease.Grant, p *process) {
	now := s.granted[b.Node]
	if now == nil || slices.Contains(p.asked, b.Nonce) {
		now = &granted{node: b.Node, nodes: b.Nodes, start: b.Start.Unix()}
		s.granted[b.Node] = now
	}
	if b.Owner == "" {
		now.freed, now.freedBy = b.End.Unix(), p.life
	} else {
		now.end = max(now.end, b.End.Unix())
	}
	now.nonce = b.Nonce
	l.byNonce[b.Nonce] = now
}

// acknowledged records that the store answered p's own write with nonce.
func (l *ledger) acknowledged(p *process, g *granted, nonce string) {
	if g != nil && slices.Contains(l.drawn[nonce], p.life) {
		p.life.proven[g] = true
	}
}

// hears records that p has seen another process's write in the store.
func (l *ledger) hears(p *process, g *granted) {
	if _, known := p.life.stopped[g]; g != nil && !known {
		p.life.stopped[g] = l.w.now
	}
}

// foreign reports whether a nonce was drawn by neither p nor its original.
func (l *ledger) foreign(p *process, nonce string) bool {
	return len(l.drawn[nonce]) > 0 && !slices.ContainsFunc(l.drawn[nonce], p.life.descends)
}

// add checks the IDs of one Fill, which have successive places in one second. Of many it decodes
// some, which takes most of the time: package randflake tests each.
func (l *ledger) add(p *process, ids []randflake.ID, second time.Time) {
	l.made += len(ids)
	l.fills++
	first := place(p.secret.Decode(ids[0]))
	for i := len(ids) - 1; i >= 0; i -= 1 + len(ids)/256 {
		if parts := p.secret.Decode(ids[i]); place(parts) != first+uint64(i) ||
			!parts.Time.Equal(second) {
			l.w.fail("undecodable", "process %d: ID %d of second %d and place %d decodes to %+v",
				p.id, i, second.Unix(), first+uint64(i), parts)
			return
		}
	}
	at, s := page{p.secret, second.Unix()}, span{first, first + uint64(len(ids))}
	node := first / perNode
	g := p.covering(s, at.second)
	if g == nil {
		l.w.fail("outside", "process %d made an ID of node %d, second %d, which it was not granted",
			p.id, node, at.second)
		return
	}
	if heard, ok := p.life.stopped[g]; ok {
		l.w.fail("deaf", "process %d made an ID of node %d, second %d, although it knew at %s "+
			"that it had lost the grant",
			p.id, node, at.second, heard)
		return
	}
	mine, others := l.open(at, p.life, g)
	if mine.overlaps(s) {
		l.w.fail("duplicate", "process %d made an ID of node %d, second %d again", p.id, node,
			at.second)
		return
	}
	for _, other := range others {
		if !other.overlaps(s) {
			continue
		}
		if why := l.wrong(mine, other, at.second); why != "" {
			l.w.fail("duplicate",
				"process %d: node %d, second %d: process %d made that ID before: %s",
				p.id, node, at.second, other.life.process.id, why)
			return
		}
	}
	if last := len(mine.spans) - 1; last >= 0 && mine.spans[last].end == s.first {
		mine.spans[last].end = s.end
	} else {
		mine.spans = append(mine.spans, s)
	}
}

// open returns the IDs of a page that a life has generated, and those of all other lives.
func (l *ledger) open(at page, by *life, g *granted) (mine *maker, others []*maker) {
	for _, m := range l.pages[at] {
		if m.life == by && m.g == g {
			mine = m
		} else {
			others = append(others, m)
		}
	}
	if mine == nil {
		mine = &maker{life: by, g: g}
		l.pages[at] = append(l.pages[at], mine)
	}
	return mine, others
}

// wrong returns why two lives must not have generated the same ID, or "" if they may.
func (l *ledger) wrong(a, b *maker, second int64) string {
	unproven := func(m *maker) bool { return !m.life.proven[m.g] }
	// freed reports whether a copy of m returned what m still uses.
	freed := func(m *maker) bool {
		by := m.g.freedBy
		return by != nil && second >= m.g.freed && unproven(m) && by.family() == m.life.family() &&
			by.process != m.life.process
	}
	switch {
	case a.life.descends(b.life) || b.life.descends(a.life):
		return "they are the same process"
	case l.w.vmclock:
		return "the machine reports restores"
	case a.g != b.g && (freed(a) || freed(b)):
		return "" // the stranger may be one of the copies, with another grant
	case a.life.family() != b.life.family():
		return "they are strangers"
	case !unproven(a) && !unproven(b):
		return "they are copies, but both are proven"
	case a.g != b.g:
		return "they are copies with different grants"
	}
	return ""
}

// covering returns the grant of p that contains IDs of a second.
func (p *process) covering(ids span, second int64) *granted {
	for _, g := range slices.Backward(p.grants) {
		inside := ids.first >= uint64(g.node)*perNode &&
			ids.end <= uint64(g.node+g.nodes)*perNode && second >= g.start && second < g.end
		if returned := g.freedBy == p.life && second >= g.freed; inside && !returned {
			return g
		}
	}
	return nil
}
