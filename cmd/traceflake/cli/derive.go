package cli

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

var errNoKey = errors.New("--deterministic needs a key for each time, so that records of one " +
	"millisecond differ: --key, or with --at - a tab and the key after the time")

// derived returns the trace or span ID of a time and a key. docs/format.md describes them.
func derived(c *randflake.Codec, t time.Time, key string, span bool) (fmt.Stringer, error) {
	if key == "" {
		return nil, errNoKey
	}
	if _, err := traceid.New(t, 1, 1); err != nil { // the time is out of range
		return nil, err
	}
	if span {
		id := max(binary.BigEndian.Uint64(mac(c, "backfill span", t, key)), 1)
		return trace.SpanID(binary.BigEndian.AppendUint64(nil, id)), nil
	}
	sum := mac(c, "backfill", t, key)
	sequence := binary.BigEndian.Uint32(sum[4:]) & 0x7fffff // its 23 bits
	low := max(binary.BigEndian.Uint64(sum[8:]), 1)
	return traceid.New(t, sequence, randflake.ID(low))
}

// mac returns HMAC-SHA256 of a millisecond and a key, under a key that the secret derives.
func mac(c *randflake.Codec, purpose string, t time.Time, key string) []byte {
	secret, least := c.Derive(purpose), traceid.Min(t)
	hash := hmac.New(sha256.New, secret[:])
	hash.Write(least[:8])
	hash.Write([]byte(key))
	return hash.Sum(nil)
}
