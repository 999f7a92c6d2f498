package driver

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/internal/owner"
	"github.com/traceflake/traceflake/randflake"
)

// CheckRequest refuses an Acquire or a Renew that no store may grant. storeNow is
// the store's own time, or the zero Time if it has none. Errors:
// [lease.ErrInvalidRequest], [lease.ErrClockAhead], [randflake.ErrBeforeEpoch],
// [randflake.ErrEndOfLife].
func CheckRequest(r lease.Request, storeNow time.Time) error {
	if err := checkHex("nonce", r.Nonce, nonceLen); err != nil {
		return err
	}
	if err := owner.Check(r.Owner); err != nil {
		return fmt.Errorf("%w: %w", lease.ErrInvalidRequest, err)
	}
	if r.TTL < lease.MinTTL || r.TTL > lease.MaxTTL {
		return fmt.Errorf("%w: TTL %s, want %s to %s",
			lease.ErrInvalidRequest, r.TTL, lease.MinTTL, lease.MaxTTL)
	}
	switch {
	case r.Now.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrBeforeEpoch)
	case r.Now.Unix() >= randflake.EndOfLife:
		return fmt.Errorf("lease: the client's clock: %w", randflake.ErrEndOfLife)
	case !storeNow.IsZero() && r.Now.After(storeNow.Add(lease.MaxClockAhead)):
		return fmt.Errorf("%w by %s", lease.ErrClockAhead, r.Now.Sub(storeNow).Round(time.Second))
	}
	return nil
}

// nonceLen is the length of what lease.NewNonce returns.
const nonceLen = 32

// CheckRaise refuses a time to which no block can be raised. Errors:
// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func CheckRaise(until time.Time) error {
	switch {
	case until.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: raise: %w", randflake.ErrBeforeEpoch)
	case roundUp(until).Unix() > randflake.EndOfLife:
		return fmt.Errorf("lease: raise: %w", randflake.ErrEndOfLife)
	}
	return nil
}
