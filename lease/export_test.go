package lease

import (
	"context"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Exports for external tests, which can import stores.

const (
	MaxBackoff = maxBackoff
	CheckEvery = checkEvery
	Reseeding  = reseeding
)

// Term is a grant that a Keeper holds.
type Term = term

func (t *term) Grant() Grant                    { return t.grant }
func (t *term) Over() bool                      { return t.ctx.Err() != nil }
func (t *term) Seen() time.Time                 { return t.seen }
func (t *term) Generator() *randflake.Generator { return t.gen }

// Loop is a Keeper whose goroutine does not run: tests take its steps.
type Loop struct {
	*Keeper
	loop *loop
}

// NewLoop returns a Keeper without its goroutine.
func NewLoop(s Store, secrets Secrets, opts ...Option) (*Loop, error) {
	l, err := newLoop(s, secrets, opts...)
	if err != nil {
		return nil, err
	}
	l.keeper.stop = func() {}
	return &Loop{l.keeper, l}, nil
}

func (l *Loop) Step(ctx context.Context) time.Duration { return l.loop.step(ctx) }
func (l *Loop) Term() *Term                            { return l.loop.term }
func (l *Loop) SetJitter(f func() float64)             { l.loop.jitter = f }
func (l *Loop) SetNonces(f func() string)              { l.loop.nonce = f }
func (k *Keeper) Seal()                                { k.seal() }
func (k *Keeper) Kick() chan struct{}                  { return k.kick }
func (k *Keeper) Published() *Term                     { return k.current().term }

// Former returns the term of an earlier history that is still used, or nil.
func (l *Loop) Former() *Term {
	if held := l.current().term; held != l.loop.term {
		return held
	}
	return nil
}

// ReportAtOnce lets the Keeper call its error handler itself.
func (l *Loop) ReportAtOnce() { l.loop.report = l.loop.keeper.cfg.report }

// ErrRecovered is reported after a failure.
var ErrRecovered = errRecovered

// SetReseeding sets how long nothing is drawn after a restore.
func (l *Loop) SetReseeding(d time.Duration) { l.loop.reseeding = d }

// WithMachine sets the function that reports restores.
func WithMachine(f func() uint64) Option { return func(c *config) { c.machine = f } }

// ForgetTries lets the next Acquire count as the first with its nonce.
func (l *Loop) ForgetTries() { l.loop.search.nonce = "" }

// WithClock sets the clock, which returns the wall clock and the time on a monotonic one.
func WithClock(now func() (time.Time, time.Duration)) Option {
	return func(c *config) {
		c.clock = func() (r reading) {
			r.wall, r.elapsed = now()
			return r
		}
	}
}

// Drop drops a term as another goroutine would.
func (k *Keeper) Drop(t *Term) { k.drop(t, restored, ErrCloned) }

// Drops returns how many grants were dropped, by reason.
func (k *Keeper) Drops() map[string]int64 {
	counts := map[string]int64{}
	for s, n := range k.counts {
		if s.of == drops && n > 0 {
			counts[s.what] = n
		}
	}
	return counts
}

// RequestValues returns the names of the operations and of the errors with which requests are
// counted.
func RequestValues() (names []string) {
	names = []string{"describe", "acquire", "renew", "get", "begin"}
	for _, o := range outcomes[1:] {
		names = append(names, o.name)
	}
	return append(names, otherOutcome)
}
