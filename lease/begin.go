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

// The part of a Keeper's loop that deals with the histories of a store. It leaves one, and begins
// another, if the store has moved, or if it shows what it cannot have after what it acknowledged.
// A Keeper compares what it sees within one history only, and reads it twice.

// beginTimeout bounds the begin of a history, which writes every page of the store.
const beginTimeout = 5 * time.Minute

// another reports whether an error says that the store has, or needs, another history. A store
// without a secret that has moved waits for an operator instead.
func another(err error) bool {
	return errors.Is(err, ErrHistory) || errors.Is(err, ErrBeginning) ||
		errors.Is(err, ErrMoved) && !errors.Is(err, ErrMisconfigured)
}

// learn draws the conclusion from an error that is about the present history, and reports whether
// it is. With a history that is to begin anyway there is none to draw.
func (l *loop) learn(err error) bool {
	switch {
	case !another(err), l.search.begin != nil:
		return false
	case errors.Is(err, ErrHistory):
		l.search = search{}
		return true
	case errors.Is(err, ErrMoved):
		l.report(fmt.Errorf("%w: it was restored, moved or copied, or a standby was promoted. No "+
			"IDs are equal. The store gets a new history by itself; nothing is to be done", err))
	}
	l.leave("", Moved) // for any that is complete, and here
	return true
}

// contradicted is called with an error which shows that the store was set back. What one response
// shows begins no history: servers exist that answer with old data.
func (l *loop) contradicted(history string, err error) {
	if !l.search.suspect {
		l.search.suspect = true
		return
	}
	l.report(fmt.Errorf("%w. IDs generated in its history %s may be equal. %s", err, history,
		l.keeper.healing()))
	l.leave(history, Contradicted)
}

// healing says what becomes of a store that was set back.
func (k *Keeper) healing() string {
	if k.nodesOnly {
		return "Such a store begins no history by itself: stop all processes that lease from it, " +
			"wait for the longest lease, then: traceflake lease rekey"
	}
	return "The store gets a new history by itself; nothing is to be done"
}

// leave lets the next step begin a history.
func (l *loop) leave(id, why string) {
	l.search = search{begin: &BeginRequest{Leaves: id, Reason: why}}
}

// reread reads the block of a term again that showed that the store was set back.
func (l *loop) reread(ctx context.Context) error {
	t := l.search.doubt
	_, said, err := l.read(ctx, t)
	switch {
	case said == forgotten:
		l.leave(t.grant.Store, Contradicted)
		return nil
	case err == nil:
		l.search.doubt = nil
	}
	return err
}

// describe reads the description of the store, and enters its history unless that must not go on.
func (l *loop) describe(ctx context.Context) error {
	bounded, done := l.call(ctx, "describe", callTimeout)
	d, err := l.store.Describe(bounded)
	begin := l.search.begin
	waits := begin != nil && (another(err) || err == nil && d.ID == begin.Leaves)
	if err == nil && !waits {
		err = l.enter(ctx, d)
	}
	if done(err); waits {
		return nil
	}
	return err
}

// begin begins a history, under the secret of the one that it leaves. The first two begins do not
// wait, the others wait until the present history has been known for 1, 2, 4, and at most 8
// minutes: a store that moves all the time is not kept busy. Somebody else may begin one meanwhile.
func (l *loop) begin(ctx context.Context) error {
	k := l.keeper
	if n := l.met - 3; n >= 0 && k.cfg.clock().elapsed < l.metAt+time.Minute<<min(n, 3) {
		return l.describe(ctx)
	}
	secrets, err := l.readSecrets(ctx)
	if err != nil {
		return err
	}
	if k.cfg.machine() != l.machine {
		return nil // a copy may draw the same ID
	}
	r := *l.search.begin
	r.Now, r.Secrets, r.Known = k.cfg.clock().wall, secrets, k.Histories()
	bounded, done := l.call(ctx, "begin", beginTimeout)
	d, err := l.store.Begin(bounded, r)
	done(err)
	switch {
	case err != nil && !errors.Is(err, ErrHistory):
		return err
	case k.cfg.machine() != l.machine: // a copy may have drawn the same ID
		l.leave(d.ID, r.Reason)
		return nil
	case err == nil:
		k.count(series{of: histories, what: d.Reason})
	}
	return l.enter(ctx, d)
}

// readSecrets returns the secrets of the process.
func (l *loop) readSecrets(ctx context.Context) (*randflake.Keyring, error) {
	if l.secrets == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	secrets, err := l.secrets(ctx)
	if err != nil {
		return nil, fmt.Errorf("lease: secret: %w", err)
	}
	return secrets, nil
}

// enter lets the Keeper lease in the history of a description, unless the store had left it. Then
// the store was set back, and the history forgot what was granted in it before it was left.
func (l *loop) enter(ctx context.Context, d Description) error {
	k := l.keeper
	is := func(h History) bool { return h.ID == d.ID }
	if slices.IndexFunc(k.current().histories, is) > 0 {
		l.contradicted(d.ID, fmt.Errorf("%w: its history is %s again, which it had left",
			ErrContradicted, d.ID))
		return nil
	}
	codec, err := l.codecOf(ctx, d)
	if err != nil {
		return err
	}
	l.search = search{codec: codec}
	was, _ := k.change(func(s *state) { s.about, s.histories = d, d.Merge(s.histories) })
	if d.LongestTTL < k.cfg.ttl && d.LongestTTL != was.about.LongestTTL {
		l.report(fmt.Errorf(
			"lease: the store grants leases of at most %s, this process requests %s: without the "+
				"store, leased IDs last for the shorter time only", d.LongestTTL, k.cfg.ttl))
	}
	if was.about.ID == d.ID {
		return nil
	}
	now := k.cfg.clock().elapsed
	if now > l.metAt+time.Hour {
		l.met = 0
	}
	l.met, l.metAt = l.met+1, now
	if was.about.ID != "" {
		l.report(reports.Recovered(fmt.Sprintf("lease: the store has a new history, %s, begun at "+
			"%s (%s). Leases continue in it; nothing is to be done", d.ID, text(d.Begun),
			d.Reason)))
	}
	return nil
}

// codecOf returns the codec of IDs leased in a store's history. A store without a secret has none;
// a generator still needs one, which nobody else has.
func (l *loop) codecOf(ctx context.Context, d Description) (*randflake.Codec, error) {
	switch {
	case d.Keyless && l.keeper.nodesOnly:
		return randflake.NewCodec([]byte(NewNonce())[:16])
	case d.Keyless:
		return nil, &Error{
			fmt.Errorf("%w: it has no secret, so its nodes are for lease.Nodes", ErrKeyless),
			"lease IDs from a store with a secret: traceflake lease create"}
	case l.keeper.nodesOnly:
		return nil, &Error{
			fmt.Errorf("%w: it has a secret, so its nodes are for IDs", ErrKeyless),
			"lease Nodes from a store without one: traceflake lease create --without-secret"}
	}
	secrets, err := l.readSecrets(ctx)
	if err != nil {
		return nil, err
	}
	return d.Codec(secrets)
}
