package backfill

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Deterministic returns a NewID that returns the same ID for the same key and the same time, to
// the millisecond, under the keyring's first secret. The clear half contains the time; the other
// 87 bits come from HMAC-SHA256 with a key derived from the secret, so they do not decode, and the
// IDs of a millisecond are in no order. It is not safe for concurrent use.
//
// Errors: [traceid.ErrBeforeEpoch], [traceid.ErrAfterEnd].
func Deterministic(k *randflake.Keyring) func(time.Time, []byte) (trace.TraceID, error) {
	secret := k.Codec().Derive("backfill")
	mac := hmac.New(sha256.New, secret[:])
	return func(t time.Time, key []byte) (trace.TraceID, error) {
		least := traceid.Min(t)
		mac.Reset()
		mac.Write(least[:8])
		mac.Write(key)
		var sum [sha256.Size]byte
		mac.Sum(sum[:0])
		sequence := binary.BigEndian.Uint32(sum[4:8]) & traceid.MaxSequence
		low := randflake.ID(binary.BigEndian.Uint64(sum[8:16]))
		id, err := traceid.New(t, sequence, low)
		if errors.Is(err, traceid.ErrInvalidParts) { // a half is zero
			id, err = traceid.New(t, max(sequence, 1), max(low, 1))
		}
		return id, err
	}
}
