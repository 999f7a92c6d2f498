package boltstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Option configures a [Store].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	nodes   driver.NodeRange // zero fields are taken from the file
	share   bool             // the nodes are this host's share of a fleet's nodes
	maxTTL  time.Duration
	timeout time.Duration
	now     func() time.Time
	machine func() uint64 // changes when this machine is restored from a snapshot
}

// DefaultTimeout is how long a call waits for the file's lock.
const DefaultTimeout = 2 * time.Second

// WithBlockSize sets how many nodes a block has, a power of two from 1 to
//  131072. It is fixed when the file is created. The default is the file's block
//     size, and [driver.DefaultBlockSize] for a new one.
func WithBlockSize(nodes int) Option {
	return optionFunc(func(c *config) { c.nodes.BlockSize = driver.Count(nodes, 1) })
}

// WithNodes limits the store to nodes [first, first+n), multiples of the block
// size: the host's share in a fleet with one secret. Without it the store has
// every node, which is only safe with the file's own secret.
//
// A file used with these nodes for the first time grants nothing for one
// longest TTL, since it may replace a lost one.
func WithNodes(first, n int) Option {
	return optionFunc(func(c *config) {
		c.nodes.First, c.nodes.Nodes, c.share = driver.Count(first, 0), driver.Count(n, 1), true
	})
}

// WithMaxTTL sets the longest TTL of a grant, from [lease.MinTTL] to
// [lease.MaxTTL]; the default is [lease.DefaultTTL]. Longer requests are
// shortened to it. All processes of the host must agree on it, and if a file
// with WithNodes is lost, the next one must use the longest TTL that was in
// use.
func WithMaxTTL(d time.Duration) Option {
	return optionFunc(func(c *config) { c.maxTTL = d })
}

// WithTimeout sets how long a call waits for the file's lock; the default is
// [DefaultTimeout].
func WithTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.timeout = d })
}

// WithClock sets the store's own clock; the default, and nil, is
// [randflake.SystemClock].
func WithClock(clock randflake.Clock) Option {
	return optionFunc(func(c *config) {
		if clock != nil {
			c.now = clock.Now
		}
	})
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
		opt.apply(&c)
	}
	errs := []error{c.nodes.CheckAsked()}
	if c.maxTTL < lease.MinTTL || c.maxTTL > lease.MaxTTL {
		errs = append(errs, fmt.Errorf("longest TTL %s, want %s to %s", c.maxTTL, lease.MinTTL, lease.MaxTTL))
	}
	if c.timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, want more than 0", c.timeout))
	}
	return c, errors.Join(errs...)
}
