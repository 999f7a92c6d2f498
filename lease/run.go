package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// callTimeout bounds one call to the store, and the reading of the secret.
	callTimeout = 5 * time.Second

	minBackoff = 50 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxFull is the longest backoff while no block is free: finding that out may mean reading
	// every page.
	maxFull = time.Minute
	// reseeding is how long no nonce is drawn after a restore was noticed. A kernel learns of a
	// restore within some tens of milliseconds.
	reseeding = 500 * time.Millisecond
	// lookEvery is the longest time between two comparisons of the clocks: clocks that drift apart
	// over days are not a step.
	lookEvery = time.Minute
)

// loop is a Keeper's goroutine with its state. Only that goroutine uses it.
type loop struct {
	*Keeper
	store  Store
	secret Secret

	id          string               // of the store with which the secret was compared last
	fingerprint string               // of the secret; "" if it must be compared
	term        *term                // the grant held; nil if none
	used        map[uint32]time.Time // by node, the end of what earlier terms used
	bid         string               // the nonce of an Acquire that was not granted yet
	life        uint64               // the machine's, as far as the Keeper knows
	askAt       time.Duration        // not before this on the monotonic clock
	failures    int                  // Acquires in a row
	denied      error                // the sentinel of the last permanent failure

	// What tests replace.
	report    func(error) // queues a report
	jitter    func() float64
	nonce     func() string
	reseeding time.Duration
}

// run is the Keeper's goroutine.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			l.released <- l.giveBack(<-l.release)
			return
		case <-timer.C:
		case <-l.kick:
		}
		timer.Reset(l.step(ctx))
	}
}

// step does what is due and returns how long to wait for the next time.
func (l *loop) step(ctx context.Context) time.Duration {
	now := l.sweep()
	switch t := l.term; {
	case t == nil && now.elapsed >= l.askAt:
		l.acquire(ctx)
	case t != nil && now.elapsed >= t.renewAt && ctx.Err() == nil:
		l.renew(ctx, t, now.wall)
	}
	now = l.cfg.clock()
	next := l.askAt
	if t := l.term; t != nil {
		next = min(t.renewAt, now.elapsed+t.grant.End.Sub(now.wall))
	}
	return max(min(next-now.elapsed, lookEvery), 0)
}

// sweep ends a term at its lease's end, and removes one that has ended; if it was dropped, it
// reports why. It returns a reading of the clocks at which a term that remains could be used.
func (l *loop) sweep() reading {
	now, t := l.cfg.clock(), l.term
	if t == nil {
		return now
	}
	t.look(now)
	t.offset.Store(now.offset())
	if !now.wall.Before(t.grant.End) {
		t.finish(nil)
	}
	if dropped := t.over.Load(); dropped != nil {
		h := &state{err: randflake.ErrLeaseExpired}
		if *dropped != nil {
			h.err = ErrNoLease
			l.report(*dropped)
		}
		l.term, l.used[t.grant.Node] = nil, t.gen.Seal()
		l.publish(h)
	}
	return now
}

// publish lets Next and Fill use a state, unless the Keeper is closed.
func (l *loop) publish(h *state) {
	if now := l.state.Load(); errors.Is(now.err, ErrClosed) || !l.state.CompareAndSwap(now, h) {
		h.seal() // only Close replaces what is held as well
	}
}

// call returns the context of one call to the store, and a function that ends and counts it.
func (l *loop) call(ctx context.Context, operation string) (context.Context, func(error)) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	return ctx, func(err error) {
		cancel()
		l.counts.add(series{operation: operation, outcome: outcome(err)})
	}
}

func (l *loop) request(nonce string, now time.Time) Request {
	return Request{Store: l.id, Secret: l.fingerprint, Nonce: nonce, Now: now,
		TTL:   time.Duration(l.ttl.Load()),
		Owner: l.cfg.owner}
}

// acquire requests a block. An Acquire that was not granted keeps its nonce, so that a grant is
// found again if the response was lost. A grant acquired with a repeated nonce may have been found
// by a copy of this process as well, so its term is proven only by a renewal that the store
// acknowledges.
//
// After a restore it waits, and then draws a new nonce: copies may draw the same ones until their
// kernels learn of it. The life is read before the nonce is drawn, so that a grant requested in
// an unnoticed restore generates no IDs.
func (l *loop) acquire(ctx context.Context) {
	if life := l.cfg.machine(); life != l.life {
		l.life, l.bid = life, ""
		l.askAt = l.cfg.clock().elapsed + l.reseeding
		return
	}
	if l.fingerprint == "" {
		if err := l.open(ctx); err != nil {
			l.askAt = l.later(&l.failures, maxBackoff)
			l.failed(ctx, "open the store", err)
			return
		}
	}
	repeated := l.bid != ""
	if !repeated {
		l.bid = l.nonce()
	}
	before := l.cfg.clock()
	bounded, done := l.call(ctx, "acquire")
	g, err := l.store.Acquire(bounded, l.request(l.bid, before.wall))
	done(err)
	longest := maxBackoff
	if errors.Is(err, ErrNoFreeNode) {
		longest = maxFull
	}
	l.askAt = l.later(&l.failures, longest)
	if errors.Is(err, ErrReplaced) || errors.Is(err, ErrWrongSecret) {
		l.fingerprint = ""
	}
	if err != nil {
		l.failed(ctx, "acquire", err)
		return
	}
	l.bid = ""
	if !before.wall.Before(g.End) {
		return // over already: the nonce may have been granted long ago
	}
	if g.Start.Before(l.used[g.Node]) {
		return // a copy of this process gave back seconds that this one has used
	}
	t, err := l.newTerm(g, before, l.life)
	if err != nil {
		l.failed(ctx, "acquire", err)
		return
	}
	l.term = t
	if repeated {
		t.renewAt = l.cfg.clock().elapsed
		return
	}
	l.prove(t)
}

// open reads the secret and compares it with the store's description. If the configured TTL is
// longer than the store grants, it uses the store's longest.
func (l *loop) open(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	codec, err := l.secret(limited)
	if err == nil { // a zero Codec has none
		_, err = codec.Encode(randflake.Parts{Time: time.Unix(randflake.Epoch, 0)})
	}
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	bounded, done := l.call(ctx, "describe")
	d, err := l.store.Describe(bounded)
	fingerprint := d.Fingerprint(codec)
	if err == nil && len(d.Secrets) > 0 && !slices.Contains(d.Secrets, fingerprint) {
		err = ErrWrongSecret // that of another store, which may grant the same nodes
	}
	done(err)
	if err != nil {
		return err
	}
	if ttl := time.Duration(l.ttl.Load()); d.LongestTTL > 0 && d.LongestTTL < ttl {
		l.report(fmt.Errorf(
			"lease: the store grants leases of at most %s, this process requests %s: "+
				"without the store, leased IDs last for the shorter time only", d.LongestTTL, ttl))
		l.ttl.Store(int64(d.LongestTTL))
	}
	if d.ID != l.id { // nothing of another history matters, which has another secret
		l.id, l.bid = d.ID, ""
		clear(l.used)
	}
	l.fingerprint = fingerprint
	l.codec.Store(codec)
	return nil
}

// prove lets a term generate IDs: the store has just acknowledged that no other process holds it.
// The next renewal is at half of the time left, plus or minus a tenth.
func (l *loop) prove(t *term) {
	behind := t.grant.Behind
	if was := l.behind.Swap(int64(behind)); was == 0 && behind > 0 {
		l.report(fmt.Errorf("lease: the clock is %s behind the store's: the IDs of this process "+
			"are too old, and its lease is over for others; set this machine's clock", behind))
	}
	now := l.cfg.clock()
	half := float64(t.grant.End.Sub(now.wall)) / 2
	t.failures, t.renewAt = 0, now.elapsed+time.Duration(half*(0.9+0.2*l.jitter()))
	if !t.proven {
		t.proven, l.failures, l.askAt = true, 0, now.elapsed
		l.publish(&state{term: t, err: ErrNoLease})
	}
	l.settle()
	if l.failure.Swap(nil) != nil { // not before the term can be used: Ready gives the reason
		l.denied = nil
		l.report(errRecovered)
	}
}

// renew moves a term's end.
func (l *loop) renew(ctx context.Context, t *term, now time.Time) {
	stored, said, err := l.propose(ctx, t, now)
	switch said {
	case written:
		t.confirm(stored)
		l.prove(t)
	case late: // renew again soon: a copy may have written this nonce as well
		t.confirm(stored)
		t.renewAt = l.later(&t.failures, time.Second)
	case unwritten:
		t.renewAt = l.later(&t.failures, maxBackoff)
		l.failed(ctx, "renew", err)
	default:
		why, err := said.explain(t.grant)
		l.drop(t, why, err)
	}
}

// propose asks the store to move a term's end, under a fresh nonce. It returns what the store has,
// and what that means. Without an acknowledgement the stored block decides: the response may have
// been lost, or an earlier renewal may have been late.
func (l *loop) propose(ctx context.Context, t *term,
	now time.Time) (stored Grant, said answer, err error) {
	nonce := l.nonce()
	bounded, done := l.call(ctx, "renew")
	stored, err = l.store.Renew(bounded, t.grant, l.request(nonce, now))
	done(err)
	if err == nil {
		return stored, t.meaning(stored, true), nil
	}
	if !errors.Is(err, ErrLost) && !errors.Is(err, ErrWrongSecret) {
		t.pending = append(t.pending, nonce)
	}
	bounded, done = l.call(ctx, "get")
	stored, unread := l.store.Get(bounded, t.grant)
	done(unread)
	if unread != nil {
		return stored, unwritten, err // as far as is known
	}
	return stored, t.meaning(stored, false), err
}

// giveBack seals the generator and returns the unused seconds.
func (l *loop) giveBack(ctx context.Context) error {
	l.sweep()
	t := l.term
	if t == nil {
		return nil
	}
	unused, first := t.finish(nil)
	if !first || t.shared.Load() || !t.alive() {
		// Dropped meanwhile, or restored: a copy of this process may still use it. Or others were
		// told its nodes.
		return nil
	}
	ctx, done := l.call(ctx, "release")
	err := l.store.Release(ctx, t.grant, l.nonce(), unused)
	done(err)
	return err
}

// later returns when to try again, on the monotonic clock. The wait doubles with every failure in a
// row, up to a bound; jitter spreads the clients of a store that comes back.
func (l *loop) later(failures *int, longest time.Duration) time.Duration {
	d := min(minBackoff<<min(*failures, 11), longest, time.Duration(l.ttl.Load()/8))
	*failures++
	return l.cfg.clock().elapsed + time.Duration(float64(d)*(0.5+l.jitter()))
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
	if l.failure.Swap(&err) == nil || cause != nil && !errors.Is(cause, l.denied) {
		l.report(err)
	}
	if cause != nil {
		l.denied = cause
		l.settle()
	}
}
