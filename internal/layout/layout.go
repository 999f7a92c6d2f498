// Package layout has the numbers of the clear half of a trace ID: milliseconds << SequenceBits |
// sequence. Package idgen writes it, package traceid reads it.
package layout

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
