// Package layout has what the packages that write and read IDs share, and users do not need: the
// constants of the clear half, milliseconds << SequenceBits | sequence, and bounds of their clocks.
package layout

import "time"

// Bounds of clocks; ARCHITECTURE.md shows what happens at a step of the clock.
const (
	// Noticed is how long the monotonic clock stands in for the wall clock: a generator of trace
	// IDs notices a step of the wall clock after this time at the latest.
	Noticed = 250 * time.Millisecond
	// ClockGap is how far the wall clock and the monotonic clock may diverge before a Keeper takes
	// that for a step, a suspension or a clone, and drops its lease.
	ClockGap = time.Second
	// Borrow is how far the IDs of a burst may run ahead of the clock, and how far the clock may
	// step back before IDs are refused. Both halves have this bound, and verification allows for
	// it.
	Borrow = 2 * time.Second
)

// WithStart is an option of package randflake's generators for package idgen alone: a leased
// generator needs none. Package randflake sets it, and documents it as withStart.
var WithStart func(draw func() uint64) any

const (
	// EpochMillis is the first millisecond, in Unix time: 2020-01-01T00:00:00Z.
	EpochMillis = 1_577_836_800_000
	// MaxMillis is the last millisecond, counted from EpochMillis: 2089-09-06T15:47:35.551Z.
	MaxMillis = 1<<(64-SequenceBits) - 1
	// SequenceBits is the width of the sequence.
	SequenceBits = 23
	// MaxSequence is the highest sequence number in a millisecond.
	MaxSequence = 1<<SequenceBits - 1
)
