package lease

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// maxClockGap is how far the wall clock and the monotonic clock may move apart
// from one look to the next before it counts as a step, a suspension or a
// clone.
const maxClockGap = time.Second

// term is the holding of one grant, from its acquisition to its end: one grant,
// one generator, once.
type term struct {
	gen     *randflake.Generator
	clock   randflake.Clock
	machine func() uint64
	drop    func(*term, reason, error) // called by the guard

	node   uint32
	life   uint64       // the machine's, when the grant was asked for
	second atomic.Int64 // the last second of the clock that was entered
	offset atomic.Int64 // wall clock minus monotonic clock at the last look, in ns
	busy   atomic.Int64 // the last second of the clock in which IDs were borrowed
	until  atomic.Int64 // the lease's end in Unix seconds
	over   atomic.Pointer[ending]

	// The Keeper's goroutine alone touches what follows.
	confirmed               // what the store acknowledged, and what was proposed since
	proven    bool          // no one else can have taken the grant for its own
	raised    bool          // cannot be renewed any more
	renewAt   time.Duration // on the monotonic clock
	failures  int           // renewals in a row
	hurried   bool          // the last renewal followed at once
}

// ending says why a term makes no IDs any more.
type ending struct {
	dropped bool
	err     error // what to report, if anything
}

// newTerm starts the generator of a grant. before is a reading of the clocks,
// and life one of the machine, from before the grant was asked for: what
// happened since then counts.
func (k *Keeper) newTerm(g Grant, before reading, life uint64) (*term, error) {
	t := &term{
		clock: k.cfg.clock, machine: k.cfg.machine, drop: k.drop, node: g.Node, life: life, confirmed: confirmed{grant: g},
	}
	t.second.Store(before.wall.Unix())
	t.offset.Store(before.offset())
	t.until.Store(g.End.Unix())
	var err error
	t.gen, err = randflake.NewGenerator(k.codec, g.Lease, randflake.WithClock(t.clock), randflake.WithGuard(t.guard))
	return t, err
}

// guard is the generator's. Entering a new second it looks whether the two clocks
// still go together. What it looks at last, each time, is the machine: every ID
// is made in the life in which its grant was asked for.
func (t *term) guard(now time.Time) bool {
	second := now.Unix()
	if second == t.second.Load() {
		return t.alive()
	}
	if _, ok := t.look(); !ok {
		return false
	}
	t.second.Store(second)
	return true
}

// alive drops the term if the machine was restored from a snapshot.
func (t *term) alive() bool {
	if t.machine() == t.life {
		return true
	}
	t.drop(t, restored, fmt.Errorf("%w: it was restored from a snapshot", ErrCloned))
	return false
}

// look drops the term if the machine was restored from a snapshot or the clocks
// moved apart. It follows clocks that drift.
func (t *term) look() (at reading, ok bool) {
	at = read(t.clock)
	gap := time.Duration(at.offset() - t.offset.Load())
	switch {
	case !t.alive():
		return at, false
	case gap.Abs() > maxClockGap:
		t.drop(t, clockGap, fmt.Errorf("lease: node %d: the wall clock moved by %s against the monotonic clock: "+
			"the clock was stepped, or the machine suspended or cloned", t.node, gap.Round(time.Millisecond)))
		return at, false
	}
	t.offset.Store(at.offset())
	return at, true
}

// adopt takes the grant as the store has it.
func (t *term) adopt(g Grant) error {
	if err := t.gen.Extend(g.End); err != nil && !errors.Is(err, randflake.ErrSealed) {
		return err
	}
	t.confirmed = confirmed{grant: g}
	t.until.Store(g.End.Unix())
	return nil
}

// end seals the generator and returns its first unused second. It tells whether
// the term was not over yet.
func (t *term) end(e ending) (unused time.Time, first bool) {
	first = t.over.CompareAndSwap(nil, &e)
	return t.gen.Seal(), first
}

// reading is both clocks at one moment.
type reading struct {
	wall    time.Time
	elapsed time.Duration
}

// read reads both clocks. A pause between the two looks like a gap, so it
// tries again after one.
func read(c randflake.Clock) reading {
	for tries := 0; ; tries++ {
		before := c.Elapsed()
		wall := c.Now()
		if after := c.Elapsed(); after-before < maxClockGap/8 || tries == 3 {
			return reading{wall: wall, elapsed: after}
		}
	}
}

func (r reading) offset() int64 { return r.wall.UnixNano() - int64(r.elapsed) }
