// Package layout has the constants of the clear half, milliseconds << SequenceBits | sequence.
// Package idgen writes it and traceid reads it; the constants are not exported by traceid, whose
// users need only its functions.
package layout

import "time"

// Borrow is how far the IDs of a burst may run ahead of the clock, and how far the clock may step
// back before IDs are refused. Both halves have this bound, and verification allows for it.
const Borrow = 2 * time.Second

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
