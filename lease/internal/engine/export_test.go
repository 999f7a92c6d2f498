package engine

import (
	"bytes"
)

// ErrAltered is returned if a server did not store what was sent.
var ErrAltered = errAltered

const ClockBound = clockBound

// Sealed returns an object that was edited, with the right checksum.
func Sealed(data []byte) []byte {
	lines := data[:1+bytes.LastIndexByte(bytes.TrimRight(data, "\n"), '\n')]
	return append(bytes.Clone(lines), sumOf(lines)...)
}
