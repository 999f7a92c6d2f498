package lease_test

import (
	"maps"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// ledger checks every ID that is made: it can be decoded, it lies in a rectangle that was granted
// to its maker, and it was not made before. There are two exceptions:
//
//   - Copies of a process share a grant until one of them is proven for it: the store acknowledged
//     a write whose nonce was drawn after the copy was made, or an Acquire that was repeated after
//     it. Two proven copies never share an ID, nor do two that both know of each other: a copy
//     stops at the first answer that the store gives after the other's write.
//   - If a copy returns a grant, the other copies may share IDs with the next holder, until they
//     get an answer from the store.
//
// If the machine reports its restore, copies share nothing.
type ledger struct {
	w       *world
	made    int
	granted map[uint32]*granted // the last grant of each block, by its first node
	written map[write]*granted  // the grant that a write acquired or renewed
	drawn   map[string][]*life  // the lives that drew a nonce
	pages   map[int64][]*maker  // the IDs of each second
}

// write identifies a write of a block. Copies that acquire under one nonce may get two blocks: one
// that was granted before, and one on an earlier page that has become free.
type write struct {
	node  uint32
	nonce string
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
	stopped map[*granted]bool // it knows that it lost the grant
}

func newLife(p *process, parent *life) *life {
	l := &life{process: p, parent: parent, proven: map[*granted]bool{},
		stopped: map[*granted]bool{}}
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
	g     *granted
	spans []span
}

func (m *maker) overlaps(s span) bool {
	return slices.ContainsFunc(m.spans,
		func(o span) bool { return o.first < s.end && s.first < o.end })
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, granted: map[uint32]*granted{}, written: map[write]*granted{},
		drawn: map[string][]*life{}, pages: map[int64][]*maker{}}
}

// wrote records what a process has written just now. An Acquire has its nonce, a Release no owner.
func (l *ledger) wrote(b lease.Grant, p *process) {
	now := l.granted[b.Node]
	if now == nil || slices.Contains(p.asked, b.Nonce) {
		now = &granted{node: b.Node, nodes: b.Nodes, start: b.Start.Unix()}
		l.granted[b.Node] = now
	}
	if b.Owner == "" {
		now.freed, now.freedBy = b.End.Unix(), p.life
	} else {
		now.end = max(now.end, b.End.Unix())
	}
	now.nonce = b.Nonce
	l.written[write{b.Node, b.Nonce}] = now
}

// acknowledged records that the store answered p's own write with b. If it was a repeated Acquire,
// repeatedBy sent it.
func (l *ledger) acknowledged(p *process, b lease.Grant, repeatedBy *life) {
	if repeatedBy == p.life || slices.Contains(l.drawn[b.Nonce], p.life) {
		p.life.proven[l.grant(b)] = true
	}
}

// grant returns the grant of a block that a process has.
func (l *ledger) grant(b lease.Grant) *granted { return l.written[write{b.Node, b.Nonce}] }

// read records that p, who has a grant, has read another nonce in the store: if neither p nor its
// original drew it, p must stop.
func (l *ledger) read(p *process, g *granted, nonce string) {
	if by := l.drawn[nonce]; len(by) > 0 && !slices.ContainsFunc(by, p.life.descends) {
		p.life.stopped[g] = true
	}
}

// add checks the IDs of one Fill, which have successive places in one second. It decodes the first
// and the last: package randflake tests each.
func (l *ledger) add(p *process, ids []randflake.ID, second time.Time) {
	l.made += len(ids)
	first, last := testCodec.Decode(ids[0]), testCodec.Decode(ids[len(ids)-1])
	s, at := span{place(first), place(last) + 1}, second.Unix()
	if s.end-s.first != uint64(len(ids)) || !first.Time.Equal(second) || !last.Time.Equal(second) {
		l.w.fail("undecodable", "process %d: %d IDs of second %d decode to %+v and %+v", p.id,
			len(ids), at, first, last)
		return
	}
	g := p.covering(s, at)
	if g == nil {
		l.w.fail("outside", "process %d made an ID of node %d, second %d, which it was not granted",
			p.id, first.Node, at)
		return
	}
	if p.life.stopped[g] {
		l.w.fail("deaf", "process %d made an ID of node %d, second %d, although it knew that it "+
			"had lost the grant", p.id, first.Node, at)
		return
	}
	var mine *maker
	for _, m := range l.pages[at] {
		if m.life == p.life && m.g == g {
			mine = m
		}
	}
	if mine == nil {
		mine = &maker{life: p.life, g: g}
		l.pages[at] = append(l.pages[at], mine)
	}
	for _, m := range l.pages[at] {
		if !m.overlaps(s) {
			continue
		}
		if why := l.wrong(mine, m, at); why != "" {
			l.w.fail("duplicate",
				"process %d: node %d, second %d: process %d made that ID before: %s",
				p.id, first.Node, at, m.life.process.id, why)
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
