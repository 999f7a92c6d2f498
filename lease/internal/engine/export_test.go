package engine

import (
	"bytes"
	"encoding/json"

	"github.com/traceflake/traceflake/lease"
)

// The rules, for external tests, which can import package leasetest.
var (
	AcquireBlock = acquire
	RenewBlock   = renew
	ReleaseBlock = release
	RaiseBlock   = raise
	Shorten      = shorten
	CheckRequest = checkRequest
	CheckRaise   = checkRaise
	ErrAltered   = errAltered
)

// Order returns the order in which an Acquire with a nonce tries the pages.
func Order(s lease.Store, nonce string) []int { return s.(*Store).used.config().order(nonce) }

// Sealed returns an object that was edited, with the right checksum.
func Sealed(data []byte) []byte {
	lines := data[:1+bytes.LastIndexByte(bytes.TrimRight(data, "\n"), '\n')]
	last, err := json.Marshal(sumOf(lines))
	if err != nil {
		panic(err)
	}
	return append(append(bytes.Clone(lines), last...), '\n')
}
