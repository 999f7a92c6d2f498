package boltstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
)

// Option configures a [Store].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	nodes   lease.NodeRange
	share   bool // the nodes are a host's share of a fleet's
	maxTTL  time.Duration
	timeout time.Duration
	now     func() time.Time
}

// DefaultTimeout is how long a call waits for the file's lock.
const DefaultTimeout = 2 * time.Second

// WithBlockSize sets how many nodes a block has, a power of two; the default is
// [lease.DefaultBlockSize]. It is fixed when the file is made.
func WithBlockSize(nodes int) Option {
	return optionFunc(func(c *config) { c.nodes.BlockSize = toNode(nodes) })
}

// WithNodes limits the store to nodes [first, first+n), multiples of the block
// size: the host's share of a fleet that has one secret. Without it the store
// has every node, which only suits the file's own secret.
//
// A file used with these nodes for the first time grants nothing for one
// longest TTL, since it may have replaced one that is lost.
func WithNodes(first, n int) Option {
	return optionFunc(func(c *config) {
		c.nodes.First, c.nodes.Nodes, c.share = toNode(first), toNode(n), true
	})
}

// WithMaxTTL sets the longest grant that the store gives, from [lease.MinTTL]
// to [lease.MaxTTL]; the default is [lease.DefaultTTL]. Longer ones are cut. All
// processes of the host must agree on it, and when a file with WithNodes is
// lost, the next one must have the longest that was in use.
func WithMaxTTL(d time.Duration) Option {
	return optionFunc(func(c *config) { c.maxTTL = d })
}

// WithTimeout sets how long a call waits for the file's lock; the default is
// [DefaultTimeout].
func WithTimeout(d time.Duration) Option {
	return optionFunc(func(c *config) { c.timeout = d })
}

// WithClock sets the store's own clock; the default is time.Now.
func WithClock(now func() time.Time) Option {
	return optionFunc(func(c *config) {
		if now != nil {
			c.now = now
		}
	})
}

func newConfig(opts []Option) (config, error) {
	c := config{nodes: lease.AllNodes, maxTTL: lease.DefaultTTL, timeout: DefaultTimeout, now: time.Now}
	for _, opt := range opts {
		opt.apply(&c)
	}
	errs := []error{c.nodes.Check()}
	if c.maxTTL < lease.MinTTL || c.maxTTL > lease.MaxTTL {
		errs = append(errs, fmt.Errorf("longest TTL %s, want %s to %s", c.maxTTL, lease.MinTTL, lease.MaxTTL))
	}
	if c.timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, want more than none", c.timeout))
	}
	return c, errors.Join(errs...)
}

// toNode keeps a number that is no node number one that NodeRange.Check
// refuses.
func toNode(n int) uint32 {
	if n < 0 || n > randflake.MaxNode+1 {
		return 1<<32 - 1
	}
	return uint32(n)
}
