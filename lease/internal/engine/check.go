package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// clockBound is how far a client's clock may be ahead of the store's, and how far it may be
	// behind without being reported.
	clockBound = time.Minute
	nonceLen   = 32
)

// checkRequest returns an error for an Acquire or a Renew that no store may grant. Errors:
// [lease.ErrInvalidRequest], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func checkRequest(r lease.Request) error {
	if err := cmp.Or(checkHex("nonce", r.Nonce, nonceLen), checkOwner(r.Owner)); err != nil {
		return err
	}
	switch {
	case r.TTL < lease.MinTTL || r.TTL > lease.MaxTTL:
		return invalid("TTL %s, want %s to %s", r.TTL, lease.MinTTL, lease.MaxTTL)
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
		return invalid("owner %q, want at most %d bytes of printable UTF-8", text, lease.MaxOwner)
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
	case -behind > clockBound+time.Second: // the last second may be nearly over
		return 0, fmt.Errorf("%w by %s", lease.ErrClockAhead, (-behind).Round(time.Second))
	case behind > clockBound:
		return behind.Round(time.Second), nil
	}
	return 0, nil
}

// invalid returns the error for an invalid argument.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", lease.ErrInvalidRequest, fmt.Errorf(format, args...))
}
