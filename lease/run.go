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

	// term is the grant held in the present history; nil if there is none. Until one is proven, the
	// state may have the term of an earlier history, which is used to its end.
	term     *term
	search   search        // for a term
	due      time.Duration // when the next step is, on the monotonic clock
	failures int           // steps in a row
	machine  uint64        // its generation, as far as the Keeper knows
	met      int           // how many histories, until an hour passes without another
	metAt    time.Duration // when it met the present one, on the monotonic clock
	reported error         // the sentinel of the last permanent failure

	// What tests replace.
	report    func(error) // queues a report
	jitter    func() float64
	nonce     func() string
	reseeding time.Duration
}

// search is how far the Keeper has come on its way to a term.
type search struct {
	begin *BeginRequest    // the history that must begin first; nil if none must
	doubt *term            // its block showed that the store was set back: read it again first
	codec *randflake.Codec // of the history in which to lease; nil: describe the store first
	nonce string           // of an Acquire that was not granted yet
	// suspect is set by a response which showed that the store was set back, until a description or
	// a grant shows otherwise.
	suspect bool
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
	switch {
	case ctx.Err() != nil || now.elapsed < l.due: // closing, or woken
	case l.term == nil:
		l.seek(ctx)
	default:
		l.renew(ctx, l.term, now.wall)
	}
	now = l.keeper.cfg.clock()
	wait := min(l.due-now.elapsed, checkEvery)
	if l.term != nil {
		wait = min(wait, l.term.grant.End.Sub(now.wall))
	}
	return max(wait, 0)
}

// sweep removes the terms that have ended, and returns a reading of the clocks at which one that
// remains could be used.
func (l *loop) sweep() reading {
	now := l.keeper.cfg.clock()
	if former := l.keeper.current().term; former != l.term {
		l.ended(former, now)
	}
	if l.ended(l.term, now) {
		l.term, l.due = nil, now.elapsed
	}
	return now
}

// ended reports whether a term has ended. It ends one at its lease's end; if the term was dropped,
// it reports why.
func (l *loop) ended(t *term, now reading) bool {
	if t == nil {
		return false
	}
	t.check(now)
	t.offset.Store(now.offset())
	if !now.wall.Before(t.grant.End) {
		t.end(randflake.ErrLeaseExpired)
	}
	why := context.Cause(t.ctx)
	if why == nil {
		return false
	}
	err := why
	if !errors.Is(why, randflake.ErrLeaseExpired) {
		err = ErrNoLease
	}
	_, open := l.keeper.change(func(s *state) {
		if s.term == t {
			s.term, s.err = nil, err
		}
	})
	if open && errors.Is(err, ErrNoLease) {
		l.report(why)
	}
	return true
}

// seek takes the next step to a grant: it begins a history if one must begin, or describes the
// store, and acquires a block.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The machine is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (l *loop) seek(ctx context.Context) {
	if machine := l.keeper.cfg.machine(); machine != l.machine {
		l.machine, l.search.nonce = machine, ""
		l.due = l.keeper.cfg.clock().elapsed + l.reseeding
		return
	}
	var err error
	switch {
	case l.search.begin != nil:
		err = l.begin(ctx)
	case l.search.doubt != nil:
		err = l.reread(ctx)
	case l.search.codec == nil:
		err = l.describe(ctx)
	}
	if err == nil && l.search.codec != nil {
		err = l.acquire(ctx)
	}
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	if err != nil && !l.learn(err) {
		l.failed(err)
	}
	if l.term == nil {
		l.retry(longest)
	}
}

// call returns the context of one call to the store, and a function that ends and counts it.
func (l *loop) call(ctx context.Context, operation string,
	limit time.Duration) (context.Context, func(error)) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func(err error) {
		cancel()
		l.keeper.count(series{requests, operation, outcome(err)})
	}
}

func (l *loop) request(nonce string, now time.Time) Request {
	k := l.keeper
	return Request{Store: k.current().about.ID, Nonce: nonce, Now: now, TTL: k.ttl(),
		Owner: k.cfg.owner}
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
	r := l.request(l.search.nonce, before.wall)
	bounded, done := l.call(ctx, "acquire", callTimeout)
	g, err := l.store.Acquire(bounded, r)
	done(err)
	switch {
	case errors.Is(err, ErrContradicted):
		l.contradicted(r.Store, err)
		return nil
	case err != nil:
		return err
	}
	l.search.nonce, l.search.suspect = "", false
	if g.Store != r.Store {
		return fmt.Errorf("%w: %s", ErrHistory, g.Store)
	}
	if !before.wall.Before(g.End) {
		return nil // over already: the nonce may have been granted long ago
	}
	t, err := l.keeper.newTerm(g, l.search.codec, before, l.machine)
	if err != nil {
		return err
	}
	l.term = t
	if repeated {
		l.due = l.keeper.cfg.clock().elapsed
	} else {
		l.prove(t)
	}
	return nil
}

// prove lets a term generate IDs: the store has just acknowledged that no other process holds it.
// It replaces the term of an earlier history. The next renewal is at half of the time left, plus or
// minus a tenth.
func (l *loop) prove(t *term) {
	k, behind, now := l.keeper, t.grant.Behind, l.keeper.cfg.clock()
	half := float64(t.grant.End.Sub(now.wall)) / 2
	l.failures, l.due = 0, now.elapsed+time.Duration(half*(0.9+0.2*l.jitter()))
	was, open := k.change(func(s *state) {
		s.term, s.err, s.failure, s.behind = t, ErrNoLease, nil, behind
		if !k.nodesOnly {
			s.codec = t.codec
		}
	})
	if !open {
		t.end(ErrClosed)
		return
	}
	if former := was.term; former != nil && former != t {
		former.end(randflake.ErrLeaseExpired)
	}
	k.settle()
	if was.behind == 0 && behind > 0 {
		l.report(fmt.Errorf("lease: the clock is %s behind the store's: the IDs of this process "+
			"are too old, and its lease is over for others; set this machine's clock", behind))
	}
	if was.failure != nil {
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
		l.retry(time.Second)
	case unwritten:
		l.retry(maxBackoff)
		l.failed(err)
	case ended: // the term is used to its end, or until there is another one
		l.term, l.due = nil, l.keeper.cfg.clock().elapsed
		l.learn(err)
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
	stored, said, unread := l.read(ctx, t)
	if said != ended {
		unread = err
	}
	return stored, said, unread
}

// read reads the block of a term, and returns what it means. An error without a meaning leaves
// everything as it was, as far as is known.
func (l *loop) read(ctx context.Context, t *term) (stored Grant, said answer, err error) {
	bounded, done := l.call(ctx, "get", callTimeout)
	stored, err = l.store.Get(bounded, t.grant)
	done(err)
	switch {
	case err == nil:
		said = t.meaning(stored, false)
	case errors.Is(err, ErrContradicted):
		said = forgotten
	case another(err):
		said = ended
	default:
		said = unwritten
	}
	return stored, said, err
}

// retry lets the next step wait. The wait doubles with every failure in a row, up to a bound;
// jitter spreads the clients of a store that comes back.
func (l *loop) retry(longest time.Duration) {
	d := min(minBackoff<<min(l.failures, 11), longest, l.keeper.ttl()/8)
	l.failures++
	l.due = l.keeper.cfg.clock().elapsed + time.Duration(float64(d)*(0.5+l.jitter()))
}

// errRecovered is reported after a failure.
var errRecovered error = reports.Recovered("lease: recovered: the store grants and renews leases")

// failed reports a failure when it begins, and again when it turns out to be permanent.
func (l *loop) failed(err error) {
	err = Advise(err)
	was, open := l.keeper.change(func(s *state) { s.failure = err })
	if !open {
		return
	}
	cause := permanent(err)
	if was.failure == nil || cause != nil && !errors.Is(cause, l.reported) {
		l.report(err)
	}
	if cause != nil {
		l.reported = cause
		l.keeper.settle()
	}
}
