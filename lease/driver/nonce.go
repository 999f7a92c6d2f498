package driver

import (
	"github.com/traceflake/traceflake/lease/internal/protocol"
	"github.com/traceflake/traceflake/randflake"
)

// NewNonce returns a fresh nonce for a [lease.Request].
func NewNonce() string { return protocol.NewNonce() }

// Fingerprint returns the text by which a store recognizes a secret: 16 hex digits that reveal
// nothing about the secret and differ between stores.
func Fingerprint(c *randflake.Codec, storeID string) string {
	return protocol.Fingerprint(c, storeID)
}
