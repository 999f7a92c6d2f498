package engine

import (
	"bytes"

	"github.com/traceflake/traceflake/lease"
)

// ErrAltered is returned if a server did not store what was sent.
var ErrAltered = errAltered

const ClockBound = clockBound

// TryOrder returns the order in which an Acquire with a nonce tries the pages.
func TryOrder(s lease.Store, nonce string) []int { return s.(*Store).known.Load().tryOrder(nonce) }

// Sealed returns an object that was edited, with the right checksum.
func Sealed(data []byte) []byte {
	lines := data[:1+bytes.LastIndexByte(bytes.TrimRight(data, "\n"), '\n')]
	return append(bytes.Clone(lines), sumOf(lines)...)
}
