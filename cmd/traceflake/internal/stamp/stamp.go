// Package stamp reads times in the formats of logs and tables.
package stamp

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

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

// Read returns the time in s: RFC 3339, one of its usual variants, or Unix time.
// A number below 10^11 is read as seconds, below 10^14 as milliseconds, below 10^17 as microseconds
// and otherwise as nanoseconds, so every time from 1973 on is unambiguous.
func Read(s string) (time.Time, error) {
	if t, ok := unix(s); ok {
		return t, nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.60q is not a time: want RFC 3339 or a Unix time", s)
}

// unix reads a number without rounding it, unless it has an exponent.
func unix(s string) (time.Time, bool) {
	if strings.ContainsAny(s, "eE") {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			s = strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	if strings.Trim(s, "+-.0123456789") != "" {
		return time.Time{}, false
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	digits := strings.TrimLeft(whole, "+-")
	t, unit := time.Unix(0, n), "ns"
	switch {
	case len(digits) <= 11:
		t, unit = time.Unix(n, 0), "s"
	case len(digits) <= 14:
		t, unit = time.UnixMilli(n), "ms"
	case len(digits) <= 17:
		t, unit = time.UnixMicro(n), "us"
	}
	d, err := time.ParseDuration(strings.TrimSuffix(whole, digits) + "0." + fraction + unit)
	return t.Add(d).UTC(), err == nil
}
