package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// callTimeout bounds one call to the store, and the reading of the secrets.
	callTimeout = 5 * time.Second

	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxFull is the longest backoff while no block is free: finding that out may mean reading
	// every page.
	maxFull = time.Minute
	// reseeding is how long no nonce is drawn after a restore was noticed. A kernel learns of a
	// restore within some tens of milliseconds.
	reseeding = 500 * time.Millisecond
	// checkEvery is the longest time between two comparisons of the clocks: clocks that drift apart
	// over days are not a step.
	checkEvery = time.Minute
)

// loop is a Keeper's goroutine with its state. Only that goroutine uses it.
type loop struct {
	keeper  *Keeper
	store   Store
	secrets Secrets

	about    Description      // of the history in which to lease; without an ID it must be read
	codec    *randflake.Codec // of that history
	term     *term            // the grant held in it; nil if none
	former   *term            // a grant of an earlier history, used to its end; nil if none
	search   search
	seen     []time.Duration // when each history of the last hour was met, on the monotonic clock
	reported error           // the sentinel of the last permanent failure

	// What tests replace.
	report    func(error) // queues a report
	jitter    func() float64
	nonce     func() string
	reseeding time.Duration
}

// search is the way to the next term.
type search struct {
	machine   uint64        // its generation, as far as the Keeper knows
	notBefore time.Duration // on the monotonic clock
	failures  int           // in a row
	nonce     string        // of an Acquire that was not granted yet
	// doubt is a term whose block showed that the store was set back; it is read again.
	doubt        *term
	contradicted bool          // the last Acquire showed it
	returned     string        // the history, already left, that the last description had
	begin        *BeginRequest // the history that must begin; nil if none must
}

// run is the Keeper's goroutine.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.keeper.kick:
		}
		timer.Reset(l.step(ctx))
	}
}

// step does what is due and returns how long to wait for the next time.
func (l *loop) step(ctx context.Context) time.Duration {
	now := l.sweep()
	switch t := l.term; {
	case ctx.Err() != nil: // closing
	case t == nil && now.elapsed >= l.search.notBefore:
		l.seek(ctx)
	case t != nil && now.elapsed >= t.renewAt:
		l.renew(ctx, t, now.wall)
	}
	now = l.keeper.cfg.clock()
	next := l.search.notBefore
	if t := l.term; t != nil {
		next = min(t.renewAt, now.elapsed+t.grant.End.Sub(now.wall))
	}
	return max(min(next-now.elapsed, checkEvery), 0)
}

// sweep removes the terms that have ended, and returns a reading of the clocks at which one that
// remains could be used.
func (l *loop) sweep() reading {
	now := l.keeper.cfg.clock()
	if l.former != nil && l.ended(l.former, now) {
		l.former = nil
	}
	if l.term != nil && l.ended(l.term, now) {
		l.term = nil
	}
	return now
}

// ended reports whether a term has ended. It ends one at its lease's end; if the term was dropped,
// it reports why.
func (l *loop) ended(t *term, now reading) bool {
	t.check(now)
	t.offset.Store(now.offset())
	if !now.wall.Before(t.grant.End) {
		t.finish(nil)
	}
	dropped := t.over.Load()
	if dropped == nil {
		return false
	}
	h := &state{err: randflake.ErrLeaseExpired}
	if *dropped != nil {
		h.err = ErrNoLease
		l.report(*dropped)
	}
	if l.keeper.state.Load().term == t {
		l.publish(h)
	}
	return true
}

// publish lets Next and Fill use a state, unless the Keeper is closed.
func (l *loop) publish(h *state) {
	now := l.keeper.state.Load()
	if errors.Is(now.err, ErrClosed) || !l.keeper.state.CompareAndSwap(now, h) {
		h.seal() // only Close replaces what is held as well
	}
}

// seek takes the next step to a grant: it describes the store, begins a history if it must not go
// on in the present one, and acquires a block.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The machine is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (l *loop) seek(ctx context.Context) {
	if machine := l.keeper.cfg.machine(); machine != l.search.machine {
		l.search.machine, l.search.nonce = machine, ""
		l.search.notBefore = l.keeper.cfg.clock().elapsed + l.reseeding
		return
	}
	what, err := "acquire", error(nil)
	switch {
	case l.search.begin != nil:
		what, err = "begin a history", l.begin(ctx)
	case l.search.doubt != nil:
		what, err = "read a block again", l.reread(ctx)
	case l.about.ID == "":
		what, err = "open the store", l.describe(ctx)
	}
	if err == nil && l.about.ID != "" {
		what, err = "acquire", l.acquire(ctx)
	}
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	if err != nil && !l.learn(l.about.History, err) {
		l.failed(ctx, what, err)
	}
	if l.term == nil {
		l.search.notBefore = l.later(&l.search.failures, longest)
	}
}

// call returns the context of one call to the store, and a function that ends and counts it.
func (l *loop) call(ctx context.Context, operation string,
	limit time.Duration) (context.Context, func(error)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func(err error) {
		cancel()
		l.keeper.counts.add(series{operation: operation, outcome: outcome(err)})
	}
}

func (l *loop) request(nonce string, now time.Time) Request {
	return Request{Store: l.about.ID, Nonce: nonce, Now: now,
		TTL: time.Duration(l.keeper.ttl.Load()), Owner: l.keeper.cfg.owner}
}

// acquire requests a block. An Acquire that was not granted keeps its nonce, so that a grant is
// found again if the response was lost. A grant acquired with a repeated nonce may have been found
// by a copy of this process as well, so its term is proven only by a renewal that the store
// acknowledges.
func (l *loop) acquire(ctx context.Context) error {
	repeated := l.search.nonce != ""
	if !repeated {
		l.search.nonce = l.nonce()
	}
	before := l.keeper.cfg.clock()
	bounded, done := l.call(ctx, "acquire", callTimeout)
	g, err := l.store.Acquire(bounded, l.request(l.search.nonce, before.wall))
	done(err)
	again := l.search.contradicted
	if l.search.contradicted = errors.Is(err, ErrContradicted); l.search.contradicted {
		l.contradicted(err, again)
		return nil
	}
	if err != nil {
		return err
	}
	l.search.nonce = ""
	if g.Store != l.about.ID {
		return fmt.Errorf("%w: %s", ErrHistory, g.Store)
	}
	if !before.wall.Before(g.End) {
		return nil // over already: the nonce may have been granted long ago
	}
	t, err := l.keeper.newTerm(g, l.codec, before, l.search.machine)
	if err != nil {
		return err
	}
	l.term = t
	if repeated {
		t.renewAt = l.keeper.cfg.clock().elapsed
		return nil
	}
	l.prove(t)
	return nil
}

// prove lets a term generate IDs: the store has just acknowledged that no other process holds it.
// It replaces the term of an earlier history. The next renewal is at half of the time left, plus or
// minus a tenth.
func (l *loop) prove(t *term) {
	k, behind := l.keeper, t.grant.Behind
	if was := k.behind.Swap(int64(behind)); was == 0 && behind > 0 {
		l.report(fmt.Errorf("lease: the clock is %s behind the store's: the IDs of this process "+
			"are too old, and its lease is over for others; set this machine's clock", behind))
	}
	now := k.cfg.clock()
	half := float64(t.grant.End.Sub(now.wall)) / 2
	t.failures, t.renewAt = 0, now.elapsed+time.Duration(half*(0.9+0.2*l.jitter()))
	if !t.proven {
		t.proven, l.search.failures, l.search.notBefore = true, 0, now.elapsed
		if !k.nodesOnly {
			k.codec.Store(t.codec)
		}
		l.publish(&state{term: t, err: ErrNoLease})
		if l.former != nil {
			l.former.finish(nil)
			l.former = nil
		}
	}
	k.settle()
	if k.failure.Swap(nil) != nil { // not before the term can be used: Ready gives the reason
		l.reported = nil
		l.report(errRecovered)
	}
}

// renew moves a term's end.
func (l *loop) renew(ctx context.Context, t *term, now time.Time) {
	stored, said, err := l.propose(ctx, t, now)
	switch said {
	case written:
		t.confirm(stored, now)
		l.prove(t)
	case late: // renew again soon: a copy may have written this nonce as well
		t.confirm(stored, now)
		t.renewAt = l.later(&t.failures, time.Second)
	case unwritten:
		t.renewAt = l.later(&t.failures, maxBackoff)
		l.failed(ctx, "renew", err)
	case ended:
		l.leaveTerm(t)
		l.learn(l.about.History, err)
	default:
		if said == forgotten {
			l.search.doubt = t
		}
		why, err := said.explain(t)
		l.keeper.drop(t, why, err)
	}
}

// propose asks the store to move a term's end, under a fresh nonce. It returns what the store has,
// and what that means. Without an acknowledgement the stored block decides: the response may have
// been lost, or an earlier renewal may have been late.
func (l *loop) propose(ctx context.Context, t *term,
	now time.Time) (stored Grant, said answer, err error) {
	nonce := l.nonce()
	bounded, done := l.call(ctx, "renew", callTimeout)
	stored, err = l.store.Renew(bounded, t.grant, l.request(nonce, now))
	done(err)
	if err == nil {
		return stored, t.meaning(stored, true), nil
	}
	if !errors.Is(err, ErrLost) {
		t.pending = append(t.pending, nonce)
	}
	stored, unread := l.get(ctx, t.grant)
	switch {
	case unread == nil:
		return stored, t.meaning(stored, false), err
	case errors.Is(unread, ErrContradicted):
		return stored, forgotten, unread
	case another(unread):
		return stored, ended, unread
	}
	return stored, unwritten, err // as far as is known
}

func (l *loop) get(ctx context.Context, g Grant) (Grant, error) {
	bounded, done := l.call(ctx, "get", callTimeout)
	stored, err := l.store.Get(bounded, g)
	done(err)
	return stored, err
}

// later returns when to try again, on the monotonic clock. The wait doubles with every failure in a
// row, up to a bound; jitter spreads the clients of a store that comes back.
func (l *loop) later(failures *int, longest time.Duration) time.Duration {
	d := min(minBackoff<<min(*failures, 11), longest, time.Duration(l.keeper.ttl.Load()/8))
	*failures++
	return l.keeper.cfg.clock().elapsed + time.Duration(float64(d)*(0.5+l.jitter()))
}

// errRecovered is reported after a failure.
var errRecovered error = reports.Recovered("lease: recovered: the store grants and renews leases")

// failed reports a failure when it begins, and again when it turns out to be permanent.
func (l *loop) failed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // closing
	}
	err = Advise(fmt.Errorf("lease: %s: %w", what, err))
	cause := permanent(err)
	if l.keeper.failure.Swap(&err) == nil || cause != nil && !errors.Is(cause, l.reported) {
		l.report(err)
	}
	if cause != nil {
		l.reported = cause
		l.keeper.settle()
	}
}
