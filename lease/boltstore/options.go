package boltstore

import (
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
)

// Option configures a store.
type Option func(*file)

// DefaultTimeout is how long a call waits for the file's lock.
const DefaultTimeout = 2 * time.Second

// WithTimeout sets how long a call waits for the file's lock; the default is
// [DefaultTimeout].
func WithTimeout(d time.Duration) Option { return func(f *file) { f.timeout = d } }

// WithClock sets the store's own clock; the default, and nil, is
// [randflake.SystemClock].
func WithClock(clock randflake.Clock) Option {
	return func(f *file) {
		if clock != nil {
			f.now = clock.Now
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
