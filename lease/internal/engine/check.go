package engine

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// checkRequest returns an error for an Acquire or a Renew that no store may grant. Errors:
// [lease.ErrInvalidRequest], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func checkRequest(r lease.Request) error {
	if err := checkHex("nonce", r.Nonce, protocol.NonceLen); err != nil {
		return err
	}
	if err := protocol.CheckOwner(r.Owner); err != nil {
		return fmt.Errorf("%w: %w", lease.ErrInvalidRequest, err)
	}
	if r.TTL < protocol.MinTTL || r.TTL > lease.MaxTTL {
		return fmt.Errorf("%w: TTL %s, want %s to %s",
			lease.ErrInvalidRequest, r.TTL, protocol.MinTTL, lease.MaxTTL)
	}
	switch {
	case r.Now.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrBeforeEpoch)
	case r.Now.Unix() >= randflake.EndOfLife:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrEndOfLife)
	}
	return nil
}

// checkClock compares the client's clock with the store's, which sends whole seconds, or the zero
// Time if it has no clock. It returns [lease.ErrClockAhead] if the client's is too far ahead, and
// the [lease.Grant.Behind] of what is granted.
func checkClock(client, store time.Time) (behind time.Duration, err error) {
	switch behind = store.Sub(client); {
	case store.IsZero():
		return 0, nil
	case -behind > protocol.MaxClockAhead+time.Second: // the last second may be nearly over
		return 0, fmt.Errorf("%w by %s", lease.ErrClockAhead, (-behind).Round(time.Second))
	case behind > protocol.MaxClockBehind:
		return behind.Round(time.Second), nil
	}
	return 0, nil
}
