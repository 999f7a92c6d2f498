package backfill

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
)

// Deterministic returns a NewID for which the same time, to the millisecond,
// and key give the same ID under the keyring's first secret. The clear half
// tells the time; the other 87 bits are from HMAC-SHA256 under a key derived
// from the secret, so they decode to nothing, and the IDs of a millisecond are
// in no order. Not safe for concurrent use.
//
// Errors: [idgen.ErrBeforeEpoch], [idgen.ErrAfterEnd].
func Deterministic(k *randflake.Keyring) func(time.Time, []byte) (trace.TraceID, error) {
	secret := k.Derive("backfill")
	mac := hmac.New(sha256.New, secret[:])
	return func(t time.Time, key []byte) (trace.TraceID, error) {
		id := idgen.MinTraceID(t)
		switch clear := idgen.Time(id); {
		case t.Before(clear):
			return trace.TraceID{}, idgen.ErrBeforeEpoch
		case !t.Before(clear.Add(time.Millisecond)):
			return trace.TraceID{}, idgen.ErrAfterEnd
		}
		mac.Reset()
		mac.Write(id[:8])
		mac.Write(key)
		var sum [sha256.Size]byte
		mac.Sum(sum[:0])
		const sequence = 1<<23 - 1
		high := binary.BigEndian.Uint64(id[:8]) | binary.BigEndian.Uint64(sum[:8])&sequence
		binary.BigEndian.PutUint64(id[:8], max(high, 1)) // zero would be a 64-bit ID
		copy(id[8:], sum[8:16])
		return id, nil
	}
}
