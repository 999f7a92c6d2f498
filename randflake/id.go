package randflake

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrInvalidID is returned by [Parse] if the text is not a Randflake ID as [ID.String] writes it.
var ErrInvalidID = errors.New("randflake: invalid ID")

// ID is a Randflake ID, encrypted. A [Generator] never generates the ID zero.
type ID uint64

const (
	textBase = 32
	// maxTextLen digits of five bits hold 64 bits.
	maxTextLen = 13
)

// Parse reads what [ID.String] writes, and nothing else: one to 13 digits of 0-9a-v, most
// significant first, lower case, no leading zero, no padding. The error wraps [ErrInvalidID].
func Parse(s string) (ID, error) {
	if len(s) == 0 || len(s) > maxTextLen {
		return 0, fmt.Errorf("%w: %d characters, want 1 to %d", ErrInvalidID, len(s), maxTextLen)
	}
	n, err := strconv.ParseUint(s, textBase, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number below 2^64 in the digits 0-9a-v", ErrInvalidID, s)
	}
	if strconv.FormatUint(n, textBase) != s {
		return 0, fmt.Errorf("%w: %q has upper-case digits or leading zeros", ErrInvalidID, s)
	}
	return ID(n), nil
}

// String returns the ID in base 32 with the digits 0-9a-v.
func (id ID) String() string { return strconv.FormatUint(uint64(id), textBase) }

// MarshalText writes what [ID.String] returns. The error is always nil.
func (id ID) MarshalText() ([]byte, error) {
	return strconv.AppendUint(nil, uint64(id), textBase), nil
}

// UnmarshalText reads what MarshalText writes, as strictly as [Parse]. On an error the ID is
// unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
