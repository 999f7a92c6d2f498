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

// checkClock returns [lease.ErrClockAhead] if the client's clock is too far ahead of the store's. A
// store without a clock has the zero Time.
func checkClock(client, store time.Time) error {
	if ahead := client.Sub(store); !store.IsZero() && ahead > protocol.MaxClockAhead {
		return fmt.Errorf("%w by %s", lease.ErrClockAhead, ahead.Round(time.Second))
	}
	return nil
}
