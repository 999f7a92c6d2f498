package randflake

import (
	"errors"
	"strconv"
)

// ID is a Randflake ID, encrypted. A [Generator] never generates the ID zero.
type ID uint64

// Parse reads the text form that [ID.String] returns, and nothing else: one to 13 digits of 0-9a-v,
// most significant first, lower case, no leading zero, no padding.
func Parse(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 32, 64)
	if err != nil || ID(n).String() != s {
		return 0, errors.New("randflake: invalid ID: want a number below 2^64 " +
			"in the digits 0-9a-v, without leading zeros")
	}
	return ID(n), nil
}

// String returns the ID in base 32 with the digits 0-9a-v.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 32) }

// MarshalText returns the text of [ID.String]. So an ID is a string in JSON, since many programs,
// such as those in JavaScript, round numbers above 2^53.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText sets the ID as [Parse] does. After an error, the ID is zero.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = Parse(string(text))
	return err
}
