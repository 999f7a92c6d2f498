package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// term is one grant in use, from its acquisition to its end: one grant, one generator, once. Its
// states:
//
//	search (no term yet): an Acquire without a response is repeated with its nonce
//	 │ granted at the first try              │ granted to a repeated nonce
//	 ▼                                       ▼
//	proven ◀── a renewal is acknowledged ── unproven: generates no IDs
//	 │ ▲
//	 │ └ renewal: written → the next at half the time left
//	 │            late, not written, no answer → again after a pause
//	 │            the store has another history → no more; another term begins in that one
//	 ▼
//	over: at its end, replaced by a term of another history, or dropped (see reason)
//
// A renewal that the store denied was not written and never will be.
type term struct {
	keeper *Keeper
	codec  *randflake.Codec // of its history
	gen    *randflake.Generator

	lease   randflake.Lease // as it was granted
	machine uint64          // its generation when the grant was requested
	offset  atomic.Int64    // wall clock minus monotonic clock at the last step, in ns
	until   atomic.Int64    // the lease's end, in Unix seconds
	// ctx ends with the term. Its cause is [randflake.ErrLeaseExpired], [ErrClosed], or why the
	// grant must not be used any more.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Only the Keeper's goroutine uses the fields below.
	grant   Grant     // as the store acknowledged it last
	seen    time.Time // when that was requested, on the wall clock
	pending []string  // the nonces of renewals since then that may be written
}

// newTerm starts the generator of a grant, with the codec of its history. before is a reading of
// the clocks, and machine the machine's generation, from before the grant was requested: later
// changes invalidate it.
func (k *Keeper) newTerm(g Grant, codec *randflake.Codec, before reading,
	machine uint64) (*term, error) {
	t := &term{keeper: k, codec: codec, lease: g.Lease, machine: machine}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.offset.Store(before.offset())
	var err error
	t.gen, err = randflake.NewGenerator(codec, g.Lease, randflake.WithClock(t.now))
	if err != nil {
		return nil, err
	}
	t.confirm(g, before.wall)
	if k.nodesOnly {
		t.endEarly()
	}
	return t, nil
}

// confirm records the state of the block that the store acknowledged, and moves the lease's end.
// All later proposals compare that state, so at most one of them is ever written, however late.
func (t *term) confirm(g Grant, at time.Time) {
	_ = t.gen.Extend(g.End) // which a generator that was sealed meanwhile refuses
	t.grant, t.seen, t.pending = g, at, nil
	t.until.Store(g.End.Unix())
}

// expires returns the lease's end. Any goroutine may call it.
func (t *term) expires() time.Time { return time.Unix(t.until.Load(), 0).UTC() }

// now returns the generator's time. It seals the generator if the grant must not be used at that
// time.
func (t *term) now() time.Time {
	now := t.keeper.cfg.clock()
	t.check(now)
	return now.wall
}

// check drops the term if it must not be used at a reading of the clocks: the machine was restored
// from a snapshot, or the clocks have diverged. It checks the machine after the clocks were read:
// every ID is generated on the machine on which its grant was requested.
func (t *term) check(at reading) {
	if t.keeper.cfg.machine() != t.machine {
		t.keeper.drop(t, restored, fmt.Errorf("%w: it was restored from a snapshot", ErrCloned))
	}
	if gap := time.Duration(at.offset() - t.offset.Load()); gap.Abs() > layout.ClockGap {
		t.keeper.drop(t, clockGap, fmt.Errorf("lease: node %d: the wall clock moved by %s against "+
			"the monotonic clock: the clock was stepped, or the machine suspended or cloned",
			t.lease.Node, gap.Round(time.Millisecond)))
	}
}

// end ends the term and seals its generator, and reports whether it is why the term has ended: it
// had not ended before, and nobody else passes this error.
func (t *term) end(why error) bool {
	t.cancel(why)
	t.gen.Seal()
	return errors.Is(context.Cause(t.ctx), why)
}
