package engine

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// checkRequest refuses an Acquire or a Renew that no store may grant. storeNow is
// the store's own time, or the zero Time if it has none. Errors:
// [lease.ErrInvalidRequest], [lease.ErrClockAhead], [randflake.ErrBeforeEpoch],
// [randflake.ErrEndOfLife].
func checkRequest(r lease.Request, storeNow time.Time) error {
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
	case !storeNow.IsZero() && r.Now.After(storeNow.Add(protocol.MaxClockAhead)):
		return fmt.Errorf("%w by %s", lease.ErrClockAhead, r.Now.Sub(storeNow).Round(time.Second))
	}
	return nil
}

// checkRaise refuses a time to which no block can be raised. Errors:
// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func checkRaise(until time.Time) error {
	switch {
	case until.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: raise: %w", randflake.ErrBeforeEpoch)
	case protocol.RoundUp(until).Unix() > randflake.EndOfLife:
		return fmt.Errorf("lease: raise: %w", randflake.ErrEndOfLife)
	}
	return nil
}
