package boltstore

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Option configures a store.
type Option func(*config)

type config struct {
	timeout time.Duration
	now     func() time.Time
	machine func() uint64 // changes when this machine is restored from a snapshot
}

// DefaultTimeout is how long a call waits for the file's lock.
const DefaultTimeout = 2 * time.Second

// WithTimeout sets how long a call waits for the file's lock; the default is
// [DefaultTimeout].
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithClock sets the store's own clock; the default, and nil, is
// [randflake.SystemClock].
func WithClock(clock randflake.Clock) Option {
	return func(c *config) {
		if clock != nil {
			c.now = clock.Now
		}
	}
}

// restores changes when this machine is restored from a snapshot. Where nothing but
// the disruption marker tells, it is constant: a live migration copies no file.
func restores() uint64 {
	machine := vmclock.System()
	generation := machine.Generation()
	if source, _ := machine.Status(); source != vmclock.GenerationCounter {
		return 0
	}
	return generation
}

func newConfig(opts []Option) (config, error) {
	c := config{timeout: DefaultTimeout, now: randflake.SystemClock{}.Now, machine: restores}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	if c.timeout <= 0 {
		return c, fmt.Errorf("%w: timeout %s, want more than 0", lease.ErrInvalidRequest, c.timeout)
	}
	return c, nil
}
