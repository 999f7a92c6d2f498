package lease

import (
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// ledger judges every ID that is made: it is decodable, inside a rectangle that
// was granted to the process that made it, and no one made it before.
type ledger struct {
	w     *world
	codec *randflake.Codec
	made  int
	fills int
	// grants are those that a store wrote, by holder, less what was given back.
	// A holder whose first answer was lost may have several.
	grants map[string][]*granted
	pages  map[page]*[(randflake.MaxSequence + 1) / 64]uint64
}

type granted struct {
	node       uint32
	nodes      uint32
	start, end int64
}

type page struct {
	node   uint32
	second int64
}

func newLedger(w *world, c *randflake.Codec) *ledger {
	return &ledger{
		w:      w,
		codec:  c,
		grants: map[string][]*granted{},
		pages:  map[page]*[(randflake.MaxSequence + 1) / 64]uint64{},
	}
}

// granted notes what a store wrote.
func (l *ledger) granted(g Grant) {
	known := l.find(g)
	if known == nil {
		known = &granted{node: g.Node, nodes: g.Nodes, start: g.Start.Unix()}
		l.grants[g.Holder] = append(l.grants[g.Holder], known)
	}
	known.end = max(known.end, g.End.Unix())
}

func (l *ledger) released(g Grant, unused time.Time) {
	if known := l.find(g); known != nil {
		known.end = min(known.end, max(roundUp(unused).Unix(), known.start))
	}
}

func (l *ledger) find(g Grant) *granted {
	for _, known := range l.grants[g.Holder] {
		if known.node == g.Node && known.start == g.Start.Unix() {
			return known
		}
	}
	return nil
}

func (l *ledger) add(p *process, ids []randflake.ID, second time.Time) {
	var last page
	var bits *[(randflake.MaxSequence + 1) / 64]uint64
	l.made += len(ids)
	l.fills++
	for _, id := range ids {
		parts := l.codec.Decode(id)
		at := page{parts.Node, parts.Time.Unix()}
		if bits == nil || at != last {
			if at.second != second.Unix() {
				l.w.fail("undecodable", "process %d: ID %s decodes to second %d, Fill said %d", p.id, id, at.second, second.Unix())
				return
			}
			if !l.covers(p, at) {
				l.w.fail("outside", "process %d made an ID of node %d, second %s, which it was not granted", p.id, at.node, text(parts.Time))
				return
			}
			if bits = l.pages[at]; bits == nil {
				bits = new([(randflake.MaxSequence + 1) / 64]uint64)
				l.pages[at] = bits
			}
			last = at
		}
		word, bit := parts.Sequence/64, uint64(1)<<(parts.Sequence%64)
		if bits[word]&bit != 0 {
			l.w.fail("duplicate", "process %d: node %d, second %s, sequence %d was made before", p.id, at.node, text(parts.Time), parts.Sequence)
			return
		}
		bits[word] |= bit
	}
}

func (l *ledger) covers(p *process, at page) bool {
	for _, holder := range p.granted {
		for _, g := range l.grants[holder] {
			if at.node-g.node < g.nodes && g.start <= at.second && at.second < g.end {
				return true
			}
		}
	}
	return false
}
