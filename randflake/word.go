package randflake

import (
	"errors"
	"time"
)

const (
	// The fields of a raw word, from the left.
	secondBits, nodeBits, sequenceBits = 30, 17, 17
	secondShift                        = nodeBits + sequenceBits

	// Epoch is the first second of Randflake time, in Unix seconds: 2024-10-27T03:33:20Z.
	Epoch = 1_730_000_000
	// EndOfLife is the first second past Randflake time, in Unix seconds: 2058-11-05T17:10:24Z.
	EndOfLife = Epoch + 1<<secondBits
	// MaxNode is the highest node number.
	MaxNode = 1<<nodeBits - 1
	// maxSequence is the highest sequence number of one node in one second.
	maxSequence = 1<<sequenceBits - 1
)

var (
	// ErrBeforeEpoch is returned for a time before [Epoch]. If a Generator returns it, set the
	// clock.
	ErrBeforeEpoch = errors.New("randflake: the time is before the epoch, 2024-10-27T03:33:20Z")
	// ErrEndOfLife is returned for a time at or past [EndOfLife].
	ErrEndOfLife = errors.New("randflake: the time is past the end of Randflake time, " +
		"2058-11-05T17:10:23Z")
)

// secondOf returns the second of t since the epoch. It checks the range before it subtracts: a
// time in 1970 is refused and does not wrap around.
func secondOf(t time.Time) (uint64, error) {
	unix := t.Unix()
	if unix < Epoch {
		return 0, ErrBeforeEpoch
	}
	if unix >= EndOfLife {
		return 0, ErrEndOfLife
	}
	return uint64(unix - Epoch), nil
}

func timeOf(second uint64) time.Time {
	return time.Unix(Epoch+int64(second), 0).UTC()
}
