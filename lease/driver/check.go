package driver

import (
	"fmt"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/internal/owner"
	"github.com/traceflake/traceflake/randflake"
)

// CheckRequest refuses a request that no store may grant. storeNow is the
// store's own time, or the zero Time if it has none. Errors:
// [lease.ErrInvalidRequest], [lease.ErrClockAhead], [randflake.ErrBeforeEpoch],
// [randflake.ErrEndOfLife].
func CheckRequest(r lease.Request, storeNow time.Time) error {
	if err := checkHolder(r.Holder); err != nil {
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
		return fmt.Errorf("lease: acquire: %w", randflake.ErrBeforeEpoch)
	case r.Now.Unix() >= randflake.EndOfLife:
		return fmt.Errorf("lease: acquire: %w", randflake.ErrEndOfLife)
	case !storeNow.IsZero() && r.Now.After(storeNow.Add(lease.MaxClockAhead)):
		return fmt.Errorf("%w by %s", lease.ErrClockAhead, r.Now.Sub(storeNow).Round(time.Second))
	}
	return nil
}

// CheckRenewal refuses an end that a client with a correct clock would not
// request: one later than the store's own time plus MaxTTL plus MaxClockAhead.
// Errors: [lease.ErrClockAhead].
func CheckRenewal(end, storeNow time.Time) error {
	if end.After(storeNow.Add(lease.MaxTTL + lease.MaxClockAhead)) {
		return fmt.Errorf("%w: it requests an end in %s",
			lease.ErrClockAhead, end.Sub(storeNow).Round(time.Second))
	}
	return nil
}

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

// holderLen is the length of what lease.NewHolder returns.
const holderLen = 32

func checkHolder(holder string) error {
	good := len(holder) == holderLen
	for _, c := range holder {
		good = good && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	if !good {
		return fmt.Errorf("%w: holder %q, want %d lower-case hex digits",
			lease.ErrInvalidRequest, holder, holderLen)
	}
	return nil
}
