package lease

import (
	"context"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Exports for external tests, which can import stores.

const (
	MaxBackoff = maxBackoff
	LookEvery  = lookEvery
	Reseeding  = reseeding
)

// Term is a grant that a Keeper holds.
type Term = term

func (t *term) Grant() Grant                    { return t.grant }
func (t *term) Over() bool                      { return t.over.Load() != nil }
func (t *term) Proven() bool                    { return t.proven }
func (t *term) Generator() *randflake.Generator { return t.gen }
func (t *term) Slew(d time.Duration)            { t.offset.Add(int64(d)) }

// NewKeeper returns a Keeper without its goroutine.
var NewKeeper = newKeeper

func (k *Keeper) Step(ctx context.Context) time.Duration { return k.loop.step(ctx) }
func (k *Keeper) Seal()                                  { k.seal() }
func (k *Keeper) GiveBack(ctx context.Context) error     { return k.loop.giveBack(ctx) }
func (k *Keeper) Kick() chan struct{}                    { return k.kick }
func (k *Keeper) Term() *Term                            { return k.loop.term }
func (k *Keeper) Published() *Term                       { return k.state.Load().term }
func (k *Keeper) SetJitter(f func() float64)             { k.loop.jitter = f }
func (k *Keeper) SetNonces(f func() string)              { k.loop.nonce = f }

// ReportAtOnce lets the Keeper call its error handler itself.
func (k *Keeper) ReportAtOnce() { k.loop.report = k.cfg.report }

// ErrRecovered is reported after a failure.
var ErrRecovered = errRecovered

// SetReseeding sets how long nothing is drawn after a restore.
func (k *Keeper) SetReseeding(d time.Duration) { k.loop.reseeding = d }

// WithMachine sets the function that reports restores.
func WithMachine(f func() uint64) Option { return func(c *config) { c.machine = f } }

// ForgetTries lets the next Acquire count as the first with its nonce.
func (k *Keeper) ForgetTries() { k.loop.bid = "" }

// Clock provides a Keeper's time.
type Clock = clock

// WithClock sets the clock.
func WithClock(c Clock) Option { return func(cfg *config) { cfg.clock = c } }

// Drop drops a term as another goroutine would.
func (k *Keeper) Drop(t *Term) { k.drop(t, restored, ErrCloned) }

// Drops returns how many grants were dropped, by reason.
func (k *Keeper) Drops() map[string]int64 {
	counts := map[string]int64{}
	for s, n := range k.counts.of {
		if s.reason != "" && n > 0 {
			counts[string(s.reason)] = n
		}
	}
	return counts
}

// RequestValues returns the names of the operations and of the errors with which requests are
// counted.
func RequestValues() (names []string) {
	names = []string{"describe", "acquire", "renew", "get", "release"}
	for _, o := range outcomes[1:] {
		names = append(names, o.name)
	}
	return append(names, otherOutcome)
}
