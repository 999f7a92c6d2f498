package traceid

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// ErrNoKey is returned for an empty key of a derived ID: records of one millisecond would have the
// same ID.
var ErrNoKey = errors.New("traceid: a derived ID needs a key")

// DeriveTrace returns the trace ID of a time and a key: the same for each call with the same
// secret, so that processes which do not know each other agree on it. The key distinguishes the
// records of a millisecond, and must not be empty. The error is [ErrNoKey] or [ErrOutOfRange].
// docs/format.md describes the derivation. A [Verifier] refuses derived IDs.
func DeriveTrace(c *randflake.Codec, t time.Time, key string) (trace.TraceID, error) {
	sum, err := mac(c, "backfill", t, key)
	if err != nil {
		return trace.TraceID{}, err
	}
	sequence := binary.BigEndian.Uint32(sum[4:]) & 0x7fffff // its 23 bits
	return New(t, sequence, randflake.ID(max(binary.BigEndian.Uint64(sum[8:]), 1)))
}

// DeriveSpan returns the span ID of a time and a key, as [DeriveTrace] returns the trace ID.
func DeriveSpan(c *randflake.Codec, t time.Time, key string) (span trace.SpanID, err error) {
	sum, err := mac(c, "backfill span", t, key)
	if err == nil {
		binary.BigEndian.PutUint64(span[:], max(binary.BigEndian.Uint64(sum), 1))
	}
	return span, err
}

// mac returns HMAC-SHA256 of a millisecond and a key, under a key that the secret derives.
func mac(c *randflake.Codec, purpose string, t time.Time, key string) ([]byte, error) {
	if key == "" {
		return nil, ErrNoKey
	}
	if _, ok := clamp(t); !ok {
		return nil, ErrOutOfRange
	}
	secret, least := c.Derive(purpose), Min(t)
	hash := hmac.New(sha256.New, secret[:])
	hash.Write(least[:8])
	hash.Write([]byte(key))
	return hash.Sum(nil), nil
}
