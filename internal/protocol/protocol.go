// Package protocol has what Keepers and the engine of stores must agree on: limits,
// nonces, and the owners of blocks. It is not part of lease, which would have to export it.
package protocol

import (
	"encoding/hex"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
)

const (
	// MinTTL is the shortest TTL of a request. Times are whole seconds, and a renewal at half of a
	// shorter TTL would not move the end.
	MinTTL = 2 * time.Second
	// MaxClockAhead is how far a client's clock may be ahead of its store's.
	MaxClockAhead = time.Minute
	// MaxClockBehind is how far it may be behind without being reported.
	MaxClockBehind = time.Minute
	// NonceLen is the length of a nonce.
	NonceLen = 32
)

// NewNonce returns a fresh nonce, which identifies a write. Copies of a machine draw different
// nonces even if their kernels have not noticed the restore.
func NewNonce() string {
	var nonce [NonceLen / 2]byte
	entropy.Read(nonce[:])
	return hex.EncodeToString(nonce[:])
}
