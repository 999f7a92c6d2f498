package boltstore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Option configures a [Store].
type Option func(*config)

type config struct {
	driver.Options
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

func newConfig(use driver.Options, opts []Option) (config, error) {
	c := config{Options: use, timeout: DefaultTimeout, now: randflake.SystemClock{}.Now, machine: restores}
	for _, opt := range opts {
		opt(&c)
	}
	c.LongestTTL = cmp.Or(c.LongestTTL, lease.DefaultTTL)
	var errs []error
	if c.LongestTTL < lease.MinTTL || c.LongestTTL > lease.MaxTTL {
		errs = append(errs, fmt.Errorf("longest TTL %s, want %s to %s", c.LongestTTL, lease.MinTTL, lease.MaxTTL))
	}
	if c.timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, want more than 0", c.timeout))
	}
	if c.Secret == driver.SharedSecret && c.Nodes.Nodes == 0 {
		errs = append(errs, fmt.Errorf("%w: a file serves one host, so with a fleet's secret this host needs nodes of its own; "+
			"reserve some for it, or use the file's own secret", lease.ErrInvalidRequest))
	}
	return c, errors.Join(errs...)
}
