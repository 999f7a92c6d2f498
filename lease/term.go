package lease

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// maxClockGap is how far the wall clock and the monotonic clock may diverge between two checks
// before it counts as a step, a suspension or a clone.
const maxClockGap = time.Second

// term is one grant in use, from its acquisition to its end: one grant, one generator, once. Its
// states:
//
//	bid (no term yet): an Acquire without a response is repeated with its nonce
//	 │ granted at the first try              │ granted to a repeated nonce
//	 ▼                                       ▼
//	proven ◀── a renewal is acknowledged ── unproven: generates no IDs
//	 │ ▲
//	 │ └ renewal: written → the next at half the time left
//	 │            late, not written, no answer → again after a pause
//	 ▼
//	over: at its end or given back, or dropped (see reason)
//
// A renewal that the store denied was not written and never will be.
type term struct {
	k   *Keeper
	gen *randflake.Generator

	node   uint32
	lease  randflake.Lease // as it was granted
	life   uint64          // the machine's, when the grant was requested
	second atomic.Int64    // the last second of the clock that was entered
	offset atomic.Int64    // wall clock minus monotonic clock at the last check, in ns
	until  atomic.Int64    // the lease's end, in Unix seconds
	shared atomic.Bool     // other generators use the nodes; see Nodes
	over   atomic.Pointer[ending]
	ctx    context.Context // of what uses the nodes
	cancel context.CancelCauseFunc

	// Only the Keeper's goroutine uses the fields below.
	confirmed               // what the store acknowledged, and what was proposed since
	proven    bool          // no other process can hold the grant
	renewAt   time.Duration // on the monotonic clock
	failures  int           // renewals in a row
}

// ending is the outcome of a term.
type ending struct{ dropped error } // the error to report; nil at the lease's end

// newTerm starts the generator of a grant. before is a reading of the clocks, and life the
// machine's generation, from before the grant was requested: later changes invalidate it.
func (k *Keeper) newTerm(g Grant, before reading, life uint64) (*term, error) {
	t := &term{k: k, node: g.Node, lease: g.Lease, life: life}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.confirm(g)
	t.offset.Store(before.offset())
	var err error
	t.gen, err = randflake.NewGenerator(k.codec.Load(), g.Lease, randflake.WithClock(t.now))
	return t, err
}

// confirm records what the store acknowledged.
func (t *term) confirm(g Grant) {
	t.confirmed = confirmed{grant: g}
	t.until.Store(g.End.Unix())
}

// extend moves the end of the generator's lease to that of g, which the store acknowledged.
func (t *term) extend(g Grant) {
	_ = t.gen.Extend(g.End) // which a generator that was sealed meanwhile refuses
	t.confirm(g)
}

// end returns the lease's end. Any goroutine may call it.
func (t *term) end() time.Time { return time.Unix(t.until.Load(), 0).UTC() }

// now returns the generator's time. It seals the generator if the grant must not be used at that
// time.
func (t *term) now() time.Time {
	now := t.k.cfg.clock.Now()
	if !t.guard(now) {
		t.gen.Seal()
	}
	return now
}

// guard reports whether the grant may be used. In each new second it checks that the two clocks
// have not diverged. Last, and each time, it checks the machine: every ID is generated in the life
// in which its grant was requested.
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

// alive reports whether the machine was not restored from a snapshot; otherwise it drops the term.
func (t *term) alive() bool {
	if t.k.cfg.machine() == t.life {
		return true
	}
	t.k.drop(t, restored, fmt.Errorf("%w: it was restored from a snapshot", ErrCloned))
	return false
}

// look drops the term if the machine was restored from a snapshot or the clocks diverged. It
// tolerates slow drift.
func (t *term) look() (at reading, ok bool) {
	at = read(t.k.cfg.clock)
	gap := time.Duration(at.offset() - t.offset.Load())
	switch {
	case !t.alive():
		return at, false
	case gap.Abs() > maxClockGap:
		t.k.drop(t, clockGap,
			fmt.Errorf("lease: node %d: the wall clock moved by %s against the monotonic clock: "+
				"the clock was stepped, or the machine suspended or cloned", t.node,
				gap.Round(time.Millisecond)))
		return at, false
	}
	t.offset.Store(at.offset())
	return at, true
}

// finish seals the generator and returns its first unused second. It reports whether the term had
// not ended before. dropped is nil unless the grant must be neither used nor given back.
func (t *term) finish(dropped error) (unused time.Time, first bool) {
	first = t.over.CompareAndSwap(nil, &ending{dropped})
	t.cancel(cmp.Or(dropped, randflake.ErrLeaseExpired))
	return t.gen.Seal(), first
}

// reading is both clocks at one moment.
type reading struct {
	wall    time.Time
	elapsed time.Duration
}

// read returns both clocks. A pause of more than maxClockGap between the two readings looks like a
// step, which costs a grant.
func read(c clock) reading { return reading{wall: c.Now(), elapsed: c.Elapsed()} }

func (r reading) offset() int64 { return r.wall.UnixNano() - int64(r.elapsed) }
