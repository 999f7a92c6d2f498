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

	lease  randflake.Lease // as it was granted
	life   uint64          // the machine's, when the grant was requested
	offset atomic.Int64    // wall clock minus monotonic clock at the last step, in ns
	until  atomic.Int64    // the lease's end, in Unix seconds
	shared atomic.Bool     // other generators use the nodes; see Nodes
	// over is nil until the term has ended. It then has the reason why the term was dropped, or a
	// nil error at the lease's end.
	over   atomic.Pointer[error]
	ctx    context.Context // of what uses the nodes
	cancel context.CancelCauseFunc

	// Only the Keeper's goroutine uses the fields below.
	grant    Grant         // as the store acknowledged it last
	pending  []string      // the nonces of renewals since then that may be written
	proven   bool          // no other process can hold the grant
	renewAt  time.Duration // on the monotonic clock
	failures int           // renewals in a row
}

// newTerm starts the generator of a grant. before is a reading of the clocks, and life the
// machine's generation, from before the grant was requested: later changes invalidate it.
func (k *Keeper) newTerm(g Grant, before reading, life uint64) (*term, error) {
	t := &term{k: k, lease: g.Lease, life: life}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.offset.Store(before.offset())
	var err error
	if t.gen, err = randflake.NewGenerator(k.codec.Load(), g.Lease,
		randflake.WithClock(t.now)); err != nil {
		return nil, err
	}
	t.confirm(g)
	return t, nil
}

// confirm records the state of the block that the store acknowledged, and moves the lease's end.
// All later proposals compare that state, so at most one of them is ever written, however late.
func (t *term) confirm(g Grant) {
	_ = t.gen.Extend(g.End) // which a generator that was sealed meanwhile refuses
	t.grant, t.pending = g, nil
	t.until.Store(g.End.Unix())
}

// end returns the lease's end. Any goroutine may call it.
func (t *term) end() time.Time { return time.Unix(t.until.Load(), 0).UTC() }

// now returns the generator's time. It seals the generator if the grant must not be used at that
// time.
func (t *term) now() time.Time {
	now := t.k.cfg.clock()
	t.look(now)
	return now.wall
}

// look drops the term if it must not be used at a reading of the clocks: the machine was restored
// from a snapshot, or the clocks have diverged. It checks the machine after the clocks were read:
// every ID is generated in the life in which its grant was requested.
func (t *term) look(at reading) {
	t.alive()
	if gap := time.Duration(at.offset() - t.offset.Load()); gap.Abs() > maxClockGap {
		t.k.drop(t, clockGap, fmt.Errorf("lease: node %d: the wall clock moved by %s against "+
			"the monotonic clock: the clock was stepped, or the machine suspended or cloned",
			t.lease.Node, gap.Round(time.Millisecond)))
	}
}

// alive reports whether the machine was not restored from a snapshot; otherwise it drops the term.
func (t *term) alive() bool {
	if t.k.cfg.machine() == t.life {
		return true
	}
	t.k.drop(t, restored, fmt.Errorf("%w: it was restored from a snapshot", ErrCloned))
	return false
}

// finish seals the generator and returns its first unused second. It reports whether the term had
// not ended before. dropped is nil unless the grant must be neither used nor given back.
func (t *term) finish(dropped error) (unused time.Time, first bool) {
	first = t.over.CompareAndSwap(nil, &dropped)
	t.cancel(cmp.Or(dropped, randflake.ErrLeaseExpired))
	return t.gen.Seal(), first
}
