package boltstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Option configures a [Store].
type Option func(*config)

type config struct {
	ownSecret bool // IDs are made with the file's own secret
	existing  bool // the file is not created
	maxTTL    time.Duration
	timeout   time.Duration
	now       func() time.Time
	machine   func() uint64 // changes when this machine is restored from a snapshot
}

// DefaultTimeout is how long a call waits for the file's lock.
const DefaultTimeout = 2 * time.Second

// WithOwnSecret says that IDs are made with [Store.Codec] only, even if the store
// has some nodes only: then a new file, which has a new secret, need not wait.
func WithOwnSecret() Option { return func(c *config) { c.ownSecret = true } }

// Existing does not create a missing file.
func Existing() Option { return func(c *config) { c.existing = true } }

// WithMaxTTL sets the longest TTL of a grant, from [lease.MinTTL] to
// [lease.MaxTTL]; the default is [lease.DefaultTTL]. Longer requests are
// shortened to it. All processes of the host must agree on it, and if a file
// with a share of a fleet's nodes is lost, the next one must use the longest TTL
// that was in use.
func WithMaxTTL(d time.Duration) Option { return func(c *config) { c.maxTTL = d } }

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
	c := config{maxTTL: lease.DefaultTTL, timeout: DefaultTimeout, now: randflake.SystemClock.Now, machine: restores}
	for _, opt := range opts {
		opt(&c)
	}
	var errs []error
	if c.maxTTL < lease.MinTTL || c.maxTTL > lease.MaxTTL {
		errs = append(errs, fmt.Errorf("longest TTL %s, want %s to %s", c.maxTTL, lease.MinTTL, lease.MaxTTL))
	}
	if c.timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, want more than 0", c.timeout))
	}
	return c, errors.Join(errs...)
}
