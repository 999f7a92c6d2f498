//go:build unix

package processes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// mark records new IDs and reports those that were generated before.
func (f *fleet) mark(l *life, ids []randflake.Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		at := second{id.Node, id.Time.Unix()}
		p := f.pages[at]
		if p == nil {
			p = new(page)
			f.pages[at] = p
		}
		l.seen[at] = true
		word, bit := id.Sequence/64, uint64(1)<<(id.Sequence%64)
		if p[word]&bit != 0 {
			if f.repeats++; f.repeats <= 3 { // batches
				f.tb.Errorf("%s generated an ID that was generated before: %+v", l.name, id)
			}
			return
		}
		p[word] |= bit
	}
}

// judge compares the IDs with the grants, and the blocks that the workers saw with the stored ones.
func (f *fleet) judge(stored []lease.Grant) {
	tb := f.tb
	tb.Helper()
	var all, learned []lease.Grant
	for _, l := range f.all {
		log, err := os.ReadFile(l.name)
		if err != nil && !os.IsNotExist(err) { // killed before it wrote any
			tb.Fatal(err)
		}
		grants, seen := read(log)
		all, learned = append(all, grants...), append(learned, seen...)
		for at := range l.seen {
			if !slices.ContainsFunc(grants, func(g lease.Grant) bool {
				return at.node-g.Node < g.Nodes && g.Start.Unix() <= at.unix &&
					at.unix < g.End.Unix()
			}) {
				tb.Errorf("%s generated IDs of %+v, which was not granted to it", l.name, at)
				break
			}
		}
	}
	f.judgeWrites(stored, learned)
	// Grants must never overlap, whether they were used or not.
	slices.SortFunc(all, func(a, b lease.Grant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Start.Compare(b.Start), a.End.Compare(b.End))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Node == b.Node && b.Start.Before(a.End) {
			tb.Errorf("grants overlap: %+v and %+v", a, b)
		}
	}
	made := f.count()
	tb.Logf("%d lives, %d grants, %d IDs", len(f.all), len(all), made)
	if made < minMade {
		tb.Errorf("only %d IDs were generated", made)
	}
}

// judgeWrites checks that each version of a block was written once, and that the store has the last
// version.
func (f *fleet) judgeWrites(stored, learned []lease.Grant) {
	f.tb.Helper()
	type version struct {
		node uint32
		n    uint64
	}
	last, nonces := map[uint32]uint64{}, map[version]string{}
	for _, g := range stored {
		last[g.Node], nonces[version{g.Node, g.Version}] = g.Version, g.Nonce
	}
	for _, g := range learned {
		v := version{g.Node, g.Version}
		if nonce, ok := nonces[v]; ok && nonce != g.Nonce || g.Version > last[g.Node] {
			f.tb.Errorf("version %d of node %d was lost: writes are not conditional, or the "+
				"store acknowledged one that had failed, or it forgot one in an outage, which "+
				"was not on a disk", v.n, v.node)
			return
		}
		nonces[v] = g.Nonce
	}
}

// read returns the content of a worker's log: the seconds that were granted, and the blocks that it
// saw. A line truncated by a kill was not used.
func read(log []byte) (grants, learned []lease.Grant) {
	for line := range bytes.Lines(log) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if !e.Released {
			learned = append(learned, e.Grant)
		}
		i := slices.IndexFunc(grants,
			func(g lease.Grant) bool { return g.Node == e.Node && g.Start.Equal(e.Start) })
		if i < 0 {
			grants = append(grants, e.Grant)
		} else if !e.Released || e.End.Before(grants[i].End) { // a renewal changes only the end
			grants[i].End = e.End
		}
	}
	return grants, learned
}
