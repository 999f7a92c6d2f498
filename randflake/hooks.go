package randflake

import (
	"errors"
	"time"
)

// The hooks in this file are for packages that build on a Generator: lease and idgen.

// ErrNoLease is returned by sources of IDs that hold no lease at the moment, such as a
// lease.Keeper, and by a zero [Generator].
var ErrNoLease = errors.New("randflake: no lease is held")

// WithGuard sets a function that decides whether the lease may still be used; by default, and with
// nil, it may. guard is called for every reservation, and by [Generator.Check], after the clock is
// read and before a word is taken, with that reading: no ID is generated from a reading that guard
// has not accepted. So it can check what may have happened to the machine since the last call, each
// time or once in each new second.
//
// If guard returns false the generator is sealed, as by [Generator.Seal], and the call returns
// [ErrSealed]. It is called by many goroutines at once, for every ID, and may use the generator
// only to seal it.
func WithGuard(guard func(now time.Time) bool) Option {
	return func(c *config) { c.guard = guard }
}

// WithStart sets where in a second's space the generator begins when its clock reaches the second;
// the default, and nil, is the first sequence number of the first node. The place is draw() modulo
// seven eighths of the space, which is 131072 times the lease's nodes: so at least an eighth is
// left before the next second is borrowed.
//
// If draw returns random numbers, copies of a generator, which would otherwise repeat each other's
// IDs for ever, diverge when the next second begins. draw is called by many goroutines at once,
// more than once for some seconds.
func WithStart(draw func() uint64) Option {
	return func(c *config) { c.draw = draw }
}
