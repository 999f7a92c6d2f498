package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// maxClockAhead is how far a client's clock may be ahead of the store's.
	maxClockAhead = time.Minute
	// maxClockBehind is how far it may be behind without being reported.
	maxClockBehind = time.Minute
	nonceLen       = 32
)

// checkRequest returns an error for an Acquire or a Renew that no store may grant. Errors:
// [lease.ErrInvalidRequest], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func checkRequest(r lease.Request) error {
	if err := checkHex("nonce", r.Nonce, nonceLen); err != nil {
		return err
	}
	if err := checkOwner(r.Owner); err != nil {
		return err
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
	}
	return nil
}

// checkOwner returns an error for a text that a store or a terminal might not handle.
func checkOwner(text string) error {
	if len(text) > lease.MaxOwner || !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: owner %q, want at most %d bytes of printable UTF-8",
			lease.ErrInvalidRequest, text, lease.MaxOwner)
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
	case -behind > maxClockAhead+time.Second: // the last second may be nearly over
		return 0, fmt.Errorf("%w by %s", lease.ErrClockAhead, (-behind).Round(time.Second))
	case behind > maxClockBehind:
		return behind.Round(time.Second), nil
	}
	return 0, nil
}
