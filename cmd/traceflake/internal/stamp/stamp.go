// Package stamp reads times in the formats of logs and tables.
package stamp

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Unit is how numbers are read.
type Unit int

// Auto reads a number below 10^11 as seconds, below 10^14 as milliseconds, below
// 10^17 as microseconds and otherwise as nanoseconds: times from 1973 to 5138 are
// unambiguous.
const (
	Auto Unit = iota
	RFC3339
	Seconds
	Milliseconds
	Microseconds
	Nanoseconds
)

// Names are the names of the units in flags, in their order.
var Names = []string{"auto", "rfc3339", "s", "ms", "us", "ns"}

// The layouts of text. A time without a zone is UTC.
var layouts = []string{
	time.RFC3339Nano,
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999Z07",
	"2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999 -0700 MST",
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999",
	time.DateOnly,
}

// Reader reads times. It remembers the layout of the last one, so it is not safe for concurrent
// use.
type Reader struct {
	Unit Unit
	last int
}

// ErrForm is returned for text that does not have the form of a time.
var ErrForm = errors.New("not a time: want RFC 3339 or a Unix time")

// Read returns the time in s.
func (r *Reader) Read(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("the time is empty")
	}
	if r.Unit != RFC3339 && numeric(s) {
		return r.number(s)
	}
	if r.Unit > RFC3339 {
		return time.Time{}, fmt.Errorf("%s is not a number, but the format is %s", quote(s), Names[r.Unit])
	}
	for i := range layouts {
		layout := (r.last + i) % len(layouts)
		if t, err := time.Parse(layouts[layout], s); err == nil {
			r.last = layout
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is %w", quote(s), ErrForm)
}

// numeric reports whether s is a number, and not the start of a date.
func numeric(s string) bool {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" {
		return false
	}
	for _, c := range digits {
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && c != '+' {
			return false
		}
	}
	return true
}

// number reads a Unix time without rounding it through a float.
func (r *Reader) number(s string) (time.Time, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && r.Unit == Auto && n >= 0 && n < 1e14 { // most files
		if n < 1e11 {
			return time.Unix(n, 0).UTC(), nil
		}
		return time.UnixMilli(n).UTC(), nil
	}
	// A Rat of "1e999999999" would fill the memory.
	if i := strings.IndexAny(s, "eE"); len(s) > 40 || i >= 0 && len(s)-i > 4 {
		return time.Time{}, fmt.Errorf("%s is %w", quote(s), ErrForm)
	}
	n, ok := new(big.Rat).SetString(s)
	if !ok {
		return time.Time{}, fmt.Errorf("%s is %w", quote(s), ErrForm)
	}
	unit := r.Unit
	if unit == Auto {
		unit = magnitude(n)
	}
	n.Mul(n, nanosPer[unit])
	var nanos, seconds big.Int
	nanos.Div(n.Num(), n.Denom()) // rounds down
	seconds.DivMod(&nanos, big.NewInt(1e9), &nanos)
	if !seconds.IsInt64() || seconds.CmpAbs(big.NewInt(1e12)) > 0 {
		return time.Time{}, fmt.Errorf("%s as a Unix time is tens of thousands of years away; is the unit right?", quote(s))
	}
	return time.Unix(seconds.Int64(), nanos.Int64()).UTC(), nil
}

var nanosPer = map[Unit]*big.Rat{
	Seconds: big.NewRat(1e9, 1), Milliseconds: big.NewRat(1e6, 1), Microseconds: big.NewRat(1e3, 1), Nanoseconds: big.NewRat(1, 1),
}

func magnitude(n *big.Rat) Unit {
	abs := new(big.Rat).Abs(n)
	for unit, limit := Seconds, int64(1e11); unit < Nanoseconds; unit, limit = unit+1, limit*1000 {
		if abs.Cmp(big.NewRat(limit, 1)) < 0 {
			return unit
		}
	}
	return Nanoseconds
}

func quote(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return fmt.Sprintf("%q", s)
}
